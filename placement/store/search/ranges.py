"""Restrict WHERE clauses to ranges and lists of ids."""

from collections.abc import Collection, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Integer, bindparam, select
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import GenericFunction
from sqlalchemy.types import NullType

from placement.store.tables import resource_providers

LISTED = 500
"""Up to this many trees or providers are listed by id; more are read as one range, with everything in between."""


def is_between(column: Any, first: str, last: str) -> ColumnElement[bool]:
    """Return the condition that a column lies between two parameters, inclusive.

    The bounds are written into the text when it is sent: without them PostgreSQL would estimate one row in two hundred
    for a prepared statement, and use the same plan for twenty trees as for twenty thousand.
    """
    bounds = [bindparam(name, type_=Integer, literal_execute=True) for name in (first, last)]
    return column.between(*bounds)  # type: ignore[no-any-return]


class Scope(Enum):
    """Which trees a statement covers."""

    ALL = "all"
    RANGE = "a range of root ids: first_root, last_root"
    LISTED = "a list of root ids: roots"


class Extent(NamedTuple):
    """A set of trees: the kind of condition that selects it, and the ids to bind."""

    scope: Scope
    values: Mapping[str, Any]

    @classmethod
    def between(cls, first: int, last: int) -> "Extent":
        """Return the trees with root ids in a range, inclusive."""
        return cls(Scope.RANGE, {"first_root": first, "last_root": last})

    @classmethod
    def listed(cls, roots: Sequence[int]) -> "Extent":
        """Return the trees with these root ids."""
        return cls(Scope.LISTED, {"roots": list(roots)})

    @classmethod
    def around(cls, roots: Collection[int]) -> "Extent":
        """Return the trees with these root ids; if there are many, those with ids in between are included."""
        return cls.listed(sorted(roots)) if len(roots) <= LISTED else cls.between(min(roots), max(roots))

    @property
    def is_empty(self) -> bool:
        """Whether it has no trees for certain."""
        return self.scope is Scope.LISTED and not self.values["roots"]


EVERYWHERE = Extent(Scope.ALL, {})


HAS_ROOT = resource_providers.c.root_provider_id.is_not(None)
"""Providers of releases before Rocky have no root until "db upgrade" gives them one: searches pass them over."""


def within(root_id: Any, scope: Scope) -> list[ColumnElement[bool]]:
    """Return the conditions that a tree is in scope, given the column with its root id."""
    if scope is Scope.RANGE:
        return [is_between(root_id, "first_root", "last_root")]
    if scope is Scope.LISTED:
        return [root_id.in_(bindparam("roots", expanding=True))]
    return [root_id.is_not(None)]


_PROVIDERS_OF_ROOTS = (
    select(resource_providers.c.id)
    .where(resource_providers.c.root_provider_id.in_(bindparam("roots", expanding=True)))
    .correlate(None)
    .scalar_subquery()
)


class _is_looked_up(GenericFunction[Any]):  # noqa: N801 - as a function of SQL
    """Whether a column equals one of the ids that a query finds."""

    # As a Boolean, SQLite and MariaDB would compare it with 1, for which no index helps.
    type = NullType()
    inherit_cache = True


@compiles(_is_looked_up)
def _in_query(element: Any, compiler: SQLCompiler, **options: Any) -> str:
    column, query = element.clauses
    return f"{compiler.process(column, **options)} IN {compiler.process(query, **options)}"


@compiles(_is_looked_up, "postgresql")
def _any_of_array(element: Any, compiler: SQLCompiler, **options: Any) -> str:
    # PostgreSQL would turn IN into a join, and read all rows of the cloud once a hundred or so trees are asked for.
    column, query = element.clauses
    return f"{compiler.process(column, **options)} = ANY (ARRAY{compiler.process(query, **options)})"


def is_of_roots(provider: Any) -> ColumnElement[bool]:
    """Return the condition that a provider, given by its id column, is in a tree with one of the ``roots``."""
    return _is_looked_up(provider, _PROVIDERS_OF_ROOTS)
