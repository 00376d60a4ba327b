"""Queries for ranges and lists of ids."""

from collections.abc import Collection
from typing import Any

from sqlalchemy import ColumnElement, Integer, Select, bindparam, select
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import GenericFunction
from sqlalchemy.types import NullType

from placement.store.connection.prepared import PreparedStatement, chunks
from placement.store.connection.unit_of_work import Transaction
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


class RowsByIds:
    """A query by ids: listed, or, if there are many close together, as one range with everything in between.

    Args:
        column: the column with the ids.
        spread: as a range, if it spans at most so many ids for each.
    """

    def __init__(self, rows: Select[Any], column: Any, *, spread: float) -> None:
        listed = rows.where(column.in_(bindparam("ids", expanding=True)))
        self._listed = PreparedStatement(listed, by_key=True)
        self._between = PreparedStatement(rows.where(is_between(column, "first", "last")))
        self._spread = spread

    def read(self, tx: Transaction, ids: Collection[int]) -> list[Any]:
        """Return the rows of some ids, perhaps with those of ids in between."""
        if len(ids) > LISTED and (last := max(ids)) - (first := min(ids)) < self._spread * len(ids):
            return tx.tuples(self._between, {"first": first, "last": last})
        return [row for chunk in chunks(sorted(ids)) for row in tx.tuples(self._listed, {"ids": list(chunk)})]


HAS_ROOT = resource_providers.c.root_provider_id.is_not(None)
"""Providers of releases before Rocky have no root until "db upgrade" gives them one: searches pass them over."""


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
