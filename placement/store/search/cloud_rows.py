"""Reads the rows that the columns of a cloud are made of, and which providers meet a condition on single ones.

There is one query for each kind of condition, set-based, whatever providers have left. So a set holds until a link of
its trait or aggregate changes, and another request with the same condition sends no query. PostgreSQL sends each column
as one binary value: as rows, those of 100,000 hosts would take the client two seconds.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Double,
    Integer,
    LargeBinary,
    Select,
    bindparam,
    cast,
    func,
    literal_column,
    select,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import GenericFunction
from sqlalchemy.types import NullType

from placement.cloud.columns import CloudRows
from placement.cloud.providers import NO_PARENT, Ints
from placement.store.connection.database import Transaction
from placement.store.connection.statements import PreparedStatement, chunks
from placement.store.stock import STEP_SIZE, StockSource
from placement.store.tables import resource_provider_aggregates, resource_provider_traits, resource_providers

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


_RP = resource_providers.c
_HAS = resource_provider_traits.c
_IN = resource_provider_aggregates.c

_PROVIDER = ("int4", "int4", "int4")
_STOCK = ("int4", "int4", "float8", "int8", "int4", "int4", "int4")
"""The types of the columns of ``CloudRows``, as PostgreSQL sends them."""

_DTYPES = {"int4": ">i4", "int8": ">i8", "float8": ">f8"}


def cloud_rows(tx: Transaction, roots: Collection[int] | None = None) -> CloudRows:
    """Return the providers of the trees with these roots, or of all, and their stocks. Two statements.

    A provider without a root, as releases of openstack-placement before Rocky left them, is in no tree.
    """
    listed = {} if roots is None else {"roots": sorted(roots)}
    is_listed, is_binary = roots is not None, tx.dialect == "postgresql"
    stocks = _stocks(keeps_usage=tx.database.keeps_usage, listed=is_listed, binary=is_binary)
    providers = _providers(listed=is_listed, binary=is_binary)
    tables = [tx.tuples(statement, listed) for statement in (providers, stocks)]
    if is_binary:
        tables = [_from_binary(rows[0], types) for rows, types in zip(tables, (_PROVIDER, _STOCK), strict=True)]
    return CloudRows(*tables)


def _from_binary(columns: Sequence[bytes | None], types: Sequence[str]) -> Any:
    """Return a table of columns that were sent as one value each; nothing is sent for no row."""
    return np.column_stack(
        [np.frombuffer(column or b"", dtype=_DTYPES[name]) for column, name in zip(columns, types, strict=True)]
    )


@lru_cache(maxsize=4)
def _providers(*, listed: bool, binary: bool) -> PreparedStatement:
    columns = _RP.root_provider_id, _RP.id, func.coalesce(_RP.parent_provider_id, NO_PARENT)
    statement = select(*_sent(columns, _PROVIDER, binary=binary)).where(_RP.root_provider_id.is_not(None))
    if listed:
        statement = statement.where(_RP.root_provider_id.in_(bindparam("roots", expanding=True)))
    return PreparedStatement(statement, by_key=listed)


@lru_cache(maxsize=8)
def _stocks(*, keeps_usage: bool, listed: bool, binary: bool) -> PreparedStatement:
    stock = StockSource(keeps_usage=keeps_usage)
    columns = _sent(_stock_columns(stock), _STOCK, binary=binary)
    statement: Select[Any] = select(*columns).select_from(stock.rows)
    if listed:
        statement = statement.where(is_of_roots(stock.inventory.c.resource_provider_id))
    return PreparedStatement(statement, by_key=listed)


def _stock_columns(stock: StockSource) -> Sequence[ColumnElement[Any]]:
    has = stock.inventory.c
    amounts = cast(stock.capacity, Double), cast(stock.used, BigInteger)
    return has.resource_provider_id, has.resource_class_id, *amounts, has.min_unit, has.max_unit, STEP_SIZE


def rows_from_tables(tx: Transaction, roots: Collection[int]) -> CloudRows:
    """Return the same of a few trees without anything that triggers keep."""
    providers = tx.tuples(_providers(listed=True, binary=False), {"roots": sorted(roots)})
    ids: list[int] = [id_ for _root, id_, _parent in providers]
    stocks = [row for chunk in chunks(ids) for row in tx.tuples(_STOCKS_OF_PROVIDERS, {"providers": list(chunk)})]
    return CloudRows(providers, stocks)


def _stocks_of_providers() -> Select[Any]:
    stock, ids = StockSource(keeps_usage=False), bindparam("providers", expanding=True, type_=Integer)
    # Restricting the usage itself keeps the database from summing up all allocations.
    of_them = stock.with_usage(stock.inventory, stock.usage.c.resource_provider_id.in_(ids))
    return select(*_stock_columns(stock)).select_from(of_them).where(stock.inventory.c.resource_provider_id.in_(ids))


def newest_root(tx: Transaction) -> int | None:
    """Return the root of the provider that was created last; None if there is none, or it is in no tree."""
    root: int | None = tx.execute(_NEWEST_ROOT).scalar()
    return root


_STOCKS_OF_PROVIDERS = PreparedStatement(_stocks_of_providers, by_key=True)
_NEWEST_ROOT = select(_RP.root_provider_id).order_by(_RP.id.desc()).limit(1)


def _sent(columns: Sequence[Any], types: Sequence[str], *, binary: bool) -> list[Any]:
    """Return columns as they are sent: each as one value, all in the same order of rows, or row by row."""
    if not binary:
        return [*columns]
    nothing = cast(literal_column("''"), LargeBinary)
    return [
        func.string_agg(getattr(func, f"{name}send")(column), nothing)
        for column, name in zip(columns, types, strict=True)
    ]


class _SetsOf:
    """The statements for the ids of the providers that a column links with each of some ids."""

    def __init__(self, held: Column[int]) -> None:
        holder, is_wanted = held.table.c.resource_provider_id, held.in_(bindparam("held", expanding=True))
        self._rows = PreparedStatement(select(held, holder).where(is_wanted))
        # One binary value for each: 100,000 ids as rows would take 50 ms of the client.
        together = func.string_agg(func.int4send(holder), cast(literal_column("''"), LargeBinary))
        self._together = PreparedStatement(select(held, together).where(is_wanted).group_by(held))

    def providers(self, tx: Transaction, held: Collection[int]) -> dict[int, Ints]:
        """Return the providers of each, in ascending order."""
        sets: dict[int, Ints] = {}
        if tx.dialect == "postgresql":
            for id_, together in tx.tuples(self._together, {"held": sorted(held)}):
                sets[id_] = np.frombuffer(together, dtype=">i4").astype(np.int64)
        else:
            table = np.array(tx.tuples(self._rows, {"held": sorted(held)}), dtype=np.int64).reshape(-1, 2)
            sets = {id_: table[table[:, 0] == id_, 1] for id_ in held}
        return {id_: np.sort(sets.get(id_, _NOBODY)) for id_ in held}


_NOBODY: Ints = np.zeros(0, dtype=np.int64)
_OWNERS, _MEMBERS = _SetsOf(_HAS.trait_id), _SetsOf(_IN.aggregate_id)

_AGGREGATES_OF = PreparedStatement(
    select(_IN.resource_provider_id, _IN.aggregate_id).where(
        _IN.resource_provider_id.in_(bindparam("providers", expanding=True))
    ),
    by_key=True,
)


def owners_of_traits(tx: Transaction, trait_ids: Collection[int]) -> dict[int, Ints]:
    """Return the ids of the providers that have each of some traits, in ascending order. One query."""
    return _OWNERS.providers(tx, trait_ids)


def members_of_aggregates(tx: Transaction, aggregate_ids: Collection[int]) -> dict[int, Ints]:
    """Return the ids of the members of each of some aggregates, in ascending order. One query."""
    return _MEMBERS.providers(tx, aggregate_ids)


def aggregates_of(tx: Transaction, providers: Collection[int]) -> Mapping[int, Collection[int]]:
    """Return the ids of the aggregates that some providers are in."""
    aggregates: dict[int, list[Any]] = defaultdict(list)
    if providers:
        for provider, aggregate in tx.tuples(_AGGREGATES_OF, {"providers": sorted(providers)}):
            aggregates[provider].append(aggregate)
    return aggregates
