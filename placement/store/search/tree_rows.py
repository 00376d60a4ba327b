"""What the planner reads of trees, in three statements: their providers, and the stocks and traits of these."""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from functools import lru_cache, partial
from typing import Any, NamedTuple

from sqlalchemy import Join, bindparam, select

from placement.store.connection.prepared import PreparedStatement
from placement.store.connection.unit_of_work import Transaction
from placement.store.search.ranges import LISTED, is_between
from placement.store.stock import STEP_SIZE, StockSource
from placement.store.tables import inventories, resource_provider_traits, resource_providers


class Relevant(NamedTuple):
    """The ids of the relevant classes and traits; None for all."""

    class_ids: Collection[int] | None = None
    trait_ids: Collection[int] | None = None


EVERYTHING = Relevant()


class NamedMember(NamedTuple):
    """A provider of a tree; starts with the fields of TreeMember."""

    id: int
    uuid: str
    root_id: int
    parent_id: int | None
    own_name: str | None

    @property
    def name(self) -> str:
        """Its name, or the uuid if it has none."""
        return self.own_name or self.uuid


class StockWithUnits(NamedTuple):
    """A provider's stock of a resource class; starts with the fields of StockRow."""

    class_id: int
    total: int
    reserved: int
    allocation_ratio: float
    used: int
    min_unit: int
    max_unit: int
    step_size: int


class TreeRows(NamedTuple):
    """The providers of some trees.

    ``stocks`` (plain tuples in the shape of StockWithUnits) and ``traits`` (ids, ascending) are by provider id; other
    providers may be included.
    """

    members: dict[int, NamedMember]
    stocks: Mapping[int, list[StockWithUnits]]
    traits: Mapping[int, list[int]]


def tree_rows(tx: Transaction, roots: Collection[int], relevant: Relevant = EVERYTHING) -> TreeRows:
    """Return all providers of the trees with these roots, of which there must be at least one.

    Args:
        tx: the transaction.
        roots: the root ids.
        relevant: the classes and traits to read.
    """
    # The same as NamedMember._make, but without a Python call for each of many thousands.
    as_members = map(partial(tuple.__new__, NamedMember), _rows(tx, _providers, roots))
    members = {member[0]: member for member in as_members if member[2] in roots}
    return TreeRows(members, stocks_in(tx, roots, relevant.class_ids), traits_in(tx, roots, relevant.trait_ids))


def stocks_in(
    tx: Transaction, roots: Collection[int], class_ids: Collection[int] | None
) -> dict[int, list[StockWithUnits]]:
    """Return the stocks of these classes (None for all) by provider, as in ``TreeRows``."""
    stocks: dict[int, list[Any]] = defaultdict(list)
    for row in _rows(tx, partial(_stocks, keeps_usage=tx.database.keeps_usage), roots, class_ids):
        stocks[row[0]].append(row[1:])
    return _sorted(stocks)


def traits_in(tx: Transaction, roots: Collection[int], trait_ids: Collection[int] | None) -> dict[int, list[int]]:
    """Return which of these traits (None for all) each provider has that has any, as in ``TreeRows``."""
    traits: dict[int, list[int]] = defaultdict(list)
    for provider, trait in _rows(tx, _traits, roots, trait_ids):
        traits[provider].append(trait)
    return _sorted(traits)


def _sorted(rows: dict[int, list[Any]]) -> dict[int, list[Any]]:
    for of_provider in rows.values():
        if len(of_provider) > 1:
            of_provider.sort()
    return rows


def _rows(
    tx: Transaction,
    statement: Callable[..., PreparedStatement],
    roots: Collection[int],
    only: Collection[int] | None = None,
) -> list[Any]:
    """Return the rows of a statement for some trees; trees with ids in between may be included."""
    if only is not None and not only:
        return []
    listed = len(roots) <= LISTED
    values: dict[str, Any] = {"ids": sorted(roots)} if listed else {"first": min(roots), "last": max(roots)}
    if only is not None:
        values["only"] = sorted(only)
    return tx.tuples(statement(listed=listed, is_narrow=only is not None), values)


_RP = resource_providers.c
_INV = inventories.c
_HAS = resource_provider_traits.c


def _of_trees(columns: Any, source: Any, only: Any, *, listed: bool) -> PreparedStatement:
    """Return a statement for trees by list or range, narrowed by the column ``only`` if given."""
    roots = _RP.root_provider_id
    among = roots.in_(bindparam("ids", expanding=True)) if listed else is_between(roots, "first", "last")
    narrowed = [] if only is None else [only.in_(bindparam("only", expanding=True))]
    return PreparedStatement(select(*columns).select_from(source).where(among, *narrowed), by_key=listed)


@lru_cache(maxsize=2)
def _providers(*, listed: bool, is_narrow: bool) -> PreparedStatement:
    assert not is_narrow
    columns = (_RP.id, _RP.uuid, _RP.root_provider_id, _RP.parent_provider_id, _RP.name)
    return _of_trees(columns, resource_providers, None, listed=listed)


@lru_cache(maxsize=8)
def _stocks(*, listed: bool, is_narrow: bool, keeps_usage: bool) -> PreparedStatement:
    stock = StockSource(keeps_usage=keeps_usage)
    amounts = (_INV.total, _INV.reserved, _INV.allocation_ratio, stock.used)
    columns = (_INV.resource_provider_id, _INV.resource_class_id, *amounts)
    units = (_INV.min_unit, _INV.max_unit, STEP_SIZE)
    source: Join = stock.inventory.join(resource_providers, _RP.id == _INV.resource_provider_id)
    only = _INV.resource_class_id if is_narrow else None
    return _of_trees((*columns, *units), stock.with_usage(source), only, listed=listed)


@lru_cache(maxsize=4)
def _traits(*, listed: bool, is_narrow: bool) -> PreparedStatement:
    source = resource_provider_traits.join(resource_providers, _RP.id == _HAS.resource_provider_id)
    only = _HAS.trait_id if is_narrow else None
    return _of_trees((_HAS.resource_provider_id, _HAS.trait_id), source, only, listed=listed)
