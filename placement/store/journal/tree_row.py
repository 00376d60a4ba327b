"""What the journal says about trees, row by row: the query for it, the same for every reader on a kind of database."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Integer, Select, String, case, func, literal_column, null, or_, select

from placement.store.journal.cursor import Cursor
from placement.store.journal.order import POSTGRESQL, SQLITE, J
from placement.store.journal.watched import CHANGED, CONSUMER, GENERATION, MARK_KINDS, NAME_KINDS, PROVIDER

MARIADB = "mysql"

MAX_ROWS = 60_000
"""The most to read."""

RowOfTree = Sequence[Any]
"""What a row says about a tree: its root; the root of another tree that may be affected; the kind; whether a request of
this server wrote it; the id of the class, trait or aggregate that it is about; the change in an amount of a class; the
provider; None.
"""

_ROOT_NOW = "SELECT root_provider_id FROM resource_providers WHERE id = placement_journal.resource_provider_id"
_OTHER_ROOT = {
    POSTGRESQL: f"CASE WHEN kind = '{PROVIDER}' THEN CAST(CAST(old_row AS json) ->> 'root_provider_id' AS integer) "
    f"WHEN request_id IS NULL THEN ({_ROOT_NOW}) END",
    MARIADB: f"CASE WHEN kind = '{PROVIDER}' THEN CAST(JSON_VALUE(old_row, '$.root_provider_id') AS SIGNED) "
    f"WHEN request_id IS NULL THEN ({_ROOT_NOW}) END",
    SQLITE: f"CASE kind WHEN '{PROVIDER}' THEN json_extract(old_row, '$.root_provider_id') END",
}
"""The root of the other tree: that of the tree which a provider has left by moving or being deleted.

Except on SQLite, which has one writer at a time, writers other than this server may write without locking the provider,
while it moves. Their row names the tree that it leaves, so its current root is looked up.
"""

_OF_NO_TREE = (CONSUMER, GENERATION)
"""Kinds of rows that leave every tree as it was."""

PLACE = "place"
"""Replaces the kind in a row that holds the snapshot's cursor."""

NO_ROW = (0, 0, 0)
"""The anchor of a reader that has seen nothing."""

NOTHING = literal_column("0", Integer)


class NewRows(NamedTuple):
    """What a snapshot shows of the journal.

    Args:
        place: its cursor.
        rows: those that an older one did not show; None if unknown.
        along: the scalars that were read along; None if none were.
    """

    place: Cursor
    rows: Sequence[RowOfTree] | None
    along: Sequence[Any] | None = None


def rows_about_trees(dialect: str) -> Select[*tuple[Any, ...]]:
    """Return the query for all rows about trees."""
    amounts = [func.coalesce(amount, NOTHING) for amount in (J.new_amount, J.old_amount)]
    return select(
        J.root_provider_id,
        literal_column(_OTHER_ROOT[dialect], Integer),
        J.kind,
        J.request_id.is_not(None),
        case((J.kind.in_([word(kind) for kind in MARK_KINDS]), J.object_id), else_=J.resource_class_id),
        amounts[0] - amounts[1],
        J.resource_provider_id,
        null(),
    ).where(is_about_trees())


def is_about_trees() -> ColumnElement[bool]:
    """Return the condition that a row is about a tree, or may be."""
    return J.kind.not_in([word(kind) for kind in _OF_NO_TREE]) & (
        # A class or trait that comes or goes is in no tree; one that is renamed may be in any.
        or_(J.kind.not_in([word(kind) for kind in NAME_KINDS]), J.action == word(CHANGED))
    )


def word(value: str) -> ColumnElement[str]:
    """Return a word as a literal, so that the query planner sees it."""
    return literal_column(f"'{value}'", String)
