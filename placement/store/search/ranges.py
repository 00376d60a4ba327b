"""Which ids: ranges and lists of them in WHERE clauses."""

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Integer, bindparam


def is_between(column: Any, first: str, last: str) -> ColumnElement[bool]:
    """Return the condition that a column lies between two parameters, both included.

    The bounds are written into the statement's text when it is sent: a prepared statement of PostgreSQL that does not
    know them expects one row in two hundred, and is kept for twenty trees and for twenty thousand alike.
    """
    bounds = [bindparam(name, type_=Integer, literal_execute=True) for name in (first, last)]
    return column.between(*bounds)  # type: ignore[no-any-return]


class Scope(Enum):
    """Which trees a statement is about."""

    ALL = "all"
    RANGE = "a range of root ids: first_root, last_root"
    LISTED = "a list of root ids: roots"


class Extent(NamedTuple):
    """The trees that something is about: what a statement says of them, and the ids that it binds."""

    scope: Scope
    values: Mapping[str, Any]

    @classmethod
    def between(cls, first: int, last: int) -> "Extent":
        """Return the trees with root ids in a range, both ends included."""
        return cls(Scope.RANGE, {"first_root": first, "last_root": last})

    @classmethod
    def listed(cls, roots: Sequence[int]) -> "Extent":
        """Return the trees with these root ids."""
        return cls(Scope.LISTED, {"roots": list(roots)})


EVERYWHERE = Extent(Scope.ALL, {})


def within(root_id: Any, scope: Scope) -> list[ColumnElement[bool]]:
    """Return the conditions that a tree is in the scope, given the column with the id of its root."""
    if scope is Scope.RANGE:
        return [is_between(root_id, "first_root", "last_root")]
    if scope is Scope.LISTED:
        return [root_id.in_(bindparam("roots", expanding=True))]
    return []
