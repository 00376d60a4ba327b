"""Rows of learnt_work: the mix of work that each profile has learnt, as a document."""

from typing import Any

import orjson
from sqlalchemy import bindparam, select, update

from placement.store.connection.dialects import insert_unless_exists
from placement.store.connection.unit_of_work import Transaction
from placement.store.tables import learnt_work

_C = learnt_work.c
_READ = select(_C.document).where(_C.profile == bindparam("of"))
_LOCK = _READ.with_for_update()
_WRITE = update(learnt_work).where(_C.profile == bindparam("of")).values(document=bindparam("written"))


def read_learnt(tx: Transaction, profile: str) -> Any:
    """Return what a profile has learnt, None if nothing yet."""
    return _read(tx.execute(_READ, {"of": profile}).scalar())


def lock_learnt(tx: Transaction, profile: str) -> Any:
    """Return the same, and let other writers of it wait; it may be written then."""
    text = tx.execute(_LOCK, {"of": profile}).scalar()
    if text is None:
        insert_unless_exists(tx, learnt_work, {"profile": profile, "document": ""}, key="profile")
        text = tx.execute(_LOCK, {"of": profile}).scalar()
    return _read(text)


def write_learnt(tx: Transaction, profile: str, document: Any) -> None:
    """Replace what a profile has learnt; ``lock_learnt`` comes first."""
    tx.execute(_WRITE, {"of": profile, "written": orjson.dumps(document).decode()})


def _read(text: str | None) -> Any:
    return orjson.loads(text) if text else None
