"""Rows of the planner: the answers to past claims, and the mix of work that each profile has learnt.

A row of planner_claims may outlive its consumer; sweeps delete it eventually.
"""

import random
from collections.abc import Collection
from dataclasses import asdict, dataclass
from typing import Any

import orjson
from sqlalchemy import bindparam, delete, func, select, update

from placement.store.connection.database import Transaction
from placement.store.connection.statements import KeyedStatement, insert_unless_exists, row_insert
from placement.store.tables import consumers, learnt_work, planner_claims

SWEPT_ROWS = 64
"""How many rows one sweep looks at."""

CLAIMS_PER_SWEEP = 16

_C = planner_claims.c
_BY_CONSUMERS = KeyedStatement(select(_C.consumer_uuid, _C.digest, _C.generation, _C.answer), _C.consumer_uuid)
_FORGET = KeyedStatement(delete(planner_claims), _C.consumer_uuid)
_INSERT = row_insert(planner_claims, _C.consumer_uuid, _C.digest, _C.generation, _C.answer)
_HIGHEST = select(func.max(_C.id))
_WINDOW = (
    select(_C.id, consumers.c.id)
    .select_from(planner_claims.outerjoin(consumers, consumers.c.uuid == _C.consumer_uuid))
    .where(_C.id >= bindparam("first"))
    .order_by(_C.id)
    .limit(SWEPT_ROWS)
)
# Concurrent sweeps may find the same rows; skip what another one has locked.
_LOCK_IF_FREE = select(_C.id).where(_C.id.in_(bindparam("ids", expanding=True))).with_for_update(skip_locked=True)
_DELETE = delete(planner_claims).where(_C.id.in_(bindparam("ids", expanding=True)))


@dataclass(frozen=True, slots=True)
class RememberedClaim:
    """The answer to a claim: ``digest`` identifies its body, ``generation`` is the consumer's after the claim."""

    consumer_uuid: str
    digest: str
    generation: int
    answer: str


def remembered_claims(tx: Transaction, consumer_uuids: Collection[str]) -> dict[str, RememberedClaim]:
    """Return the remembered claims of consumers, by uuid."""
    return {row[0]: RememberedClaim(*row) for row in _BY_CONSUMERS.tuples(tx.connection, consumer_uuids)}


def remember_claims(tx: Transaction, claims: Collection[RememberedClaim]) -> None:
    """Remember claims, replacing earlier ones of the same consumers."""
    _FORGET.change(tx.connection, [claim.consumer_uuid for claim in claims])
    tx.write_rows(_INSERT, [asdict(claim) for claim in claims])


def sweep_now_and_then(tx: Transaction) -> None:
    """On one claim in CLAIMS_PER_SWEEP or so, delete those of a few rows, anywhere, whose consumer is gone."""
    if random.randrange(CLAIMS_PER_SWEEP):  # noqa: S311 - keeps no secret
        return
    highest = tx.execute(_HIGHEST).scalar() or 0
    first = random.randint(0, highest)  # noqa: S311 - keeps no secret
    gone = [id_ for id_, consumer in tx.tuples(_WINDOW, {"first": first}) if consumer is None]
    if gone and (free := [id_ for (id_,) in tx.tuples(_LOCK_IF_FREE, {"ids": gone})]):
        tx.execute(_DELETE, {"ids": free})


_L = learnt_work.c
_READ = select(_L.document).where(_L.profile == bindparam("of"))
_LOCK = _READ.with_for_update()
_WRITE = update(learnt_work).where(_L.profile == bindparam("of")).values(document=bindparam("written"))


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
