"""Provider summaries: what the providers of some trees have, use and are. Read last, for the answer's trees only.

Who is in them is read before, where all candidates are wanted and the search needs to know it, too.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any, NamedTuple

from sqlalchemy import Select, bindparam, select

from placement.domain.inventory import Inventory
from placement.store.connection.chunks import chunks
from placement.store.connection.prepared import PreparedStatement
from placement.store.connection.unit_of_work import Transaction
from placement.store.search.ranges import is_between
from placement.store.stock import StockSource
from placement.store.tables import inventories, resource_provider_traits, resource_providers

LISTED = 500
"""Up to so many trees or providers are named one by one; more are read as one range of ids, with what lies between."""

MOST_BETWEEN = 4
"""Providers are read as a range if it has at most so many times as many ids; others are far from each other."""


class TreeMember(NamedTuple):
    """A provider of a tree."""

    id: int
    uuid: str
    root_id: int
    parent_id: int | None


class StockRow(NamedTuple):
    """What a provider has and uses of one resource class."""

    class_id: int
    total: int
    reserved: int
    allocation_ratio: float
    used: int

    @property
    def capacity(self) -> int:
        """How much may be allocated in all."""
        return Inventory(self.total, self.reserved, allocation_ratio=self.allocation_ratio).capacity


@dataclass(slots=True)
class Summaries:
    """The providers of some trees, in columns: an answer may have many thousands of them.

    ``stocks`` and ``traits`` (ids, ascending) are by provider id; their values are plain tuples and lists in the
    shape of StockRow.
    """

    members: dict[int, TreeMember] = field(default_factory=dict)
    stocks: Mapping[int, list[StockRow]] = field(default_factory=dict)
    traits: Mapping[int, list[int]] = field(default_factory=dict)
    class_names: Mapping[int, str] = field(default_factory=dict)
    trait_names: Mapping[int, str] = field(default_factory=dict)


class Inhabitants(NamedTuple):
    """Who is in some trees.

    Args:
        roots: the ids of their roots.
        members: their providers, by id.
        traits: (provider, trait) for each trait that these have, and perhaps others.
    """

    roots: Collection[int]
    members: dict[int, TreeMember]
    traits: list[tuple[int, int]]


def inhabitants(tx: Transaction, roots: Collection[int]) -> Inhabitants:
    """Return who is in the trees with these root ids, of which there is at least one."""
    members = _members(tx, roots)
    return Inhabitants(roots, members, _of_providers(tx, _traits, members))


def tree_summaries(tx: Transaction, roots: Collection[int], known: Inhabitants | None = None) -> Summaries:
    """Return all providers of the trees with these root ids.

    Args:
        tx: where to read.
        roots: the ids.
        known: who is in these trees, and perhaps in others, where that was read already.
    """
    if not roots:
        return Summaries()
    known_roots, members, pairs = known or inhabitants(tx, roots)
    if len(known_roots) > len(roots):
        members = {id_: member for id_, member in members.items() if member.root_id in roots}
    keeps_usage = tx.database.keeps_usage
    stocks, class_ids = _grouped(_of_providers(tx, partial(_stocks, keeps_usage=keeps_usage), members))
    traits: dict[int, list[int]] = defaultdict(list)
    for provider, trait in pairs:
        traits[provider].append(trait)
    for of_provider in traits.values():
        if len(of_provider) > 1:
            of_provider.sort()
    return Summaries(
        members,
        stocks,
        traits,
        tx.names.classes.names(tx.connection, class_ids),
        tx.names.traits.names(tx.connection, {trait for _provider, trait in pairs}),
    )


def _members(tx: Transaction, roots: Collection[int]) -> dict[int, TreeMember]:
    listed = len(roots) <= LISTED
    values: dict[str, Any] = {"ids": sorted(roots)} if listed else {"first": min(roots), "last": max(roots)}
    rows = tx.tuples(_providers(listed=listed), values)
    # What TreeMember._make does, without a call in Python for each of many thousands.
    found = map(partial(tuple.__new__, TreeMember), rows)
    return {member[0]: member for member in found if listed or member[2] in roots}


def _of_providers(
    tx: Transaction, statement: Callable[..., PreparedStatement], providers: Collection[int]
) -> list[Any]:
    """Return the rows of a statement for some providers, and perhaps for others in between."""
    if len(providers) <= LISTED:
        return tx.tuples(statement(listed=True), {"ids": list(providers)})
    first, last = min(providers), max(providers)
    if last - first < MOST_BETWEEN * len(providers):
        return tx.tuples(statement(listed=False), {"first": first, "last": last})
    return [row for ids in chunks(sorted(providers)) for row in tx.tuples(statement(listed=True), {"ids": ids})]


def _grouped(rows: list[Any]) -> tuple[dict[int, list[StockRow]], set[int]]:
    """Return what comes behind the provider id in each row, by provider, and all classes in it."""
    stocks: dict[int, list[StockRow]] = defaultdict(list)
    for row in rows:
        stocks[row[0]].append(row[1:])
    return stocks, {row[1] for row in rows}


_RP = resource_providers.c
_INV = inventories.c
_HAS = resource_provider_traits.c


def _among(statement: Select[Any], column: Any, *, listed: bool) -> PreparedStatement:
    condition = column.in_(bindparam("ids", expanding=True)) if listed else is_between(column, "first", "last")
    return PreparedStatement(statement.where(condition))


@lru_cache(maxsize=2)
def _providers(*, listed: bool) -> PreparedStatement:
    columns = select(_RP.id, _RP.uuid, _RP.root_provider_id, _RP.parent_provider_id)
    return _among(columns, _RP.root_provider_id, listed=listed)


@lru_cache(maxsize=4)
def _stocks(*, listed: bool, keeps_usage: bool) -> PreparedStatement:
    stock = StockSource(keeps_usage=keeps_usage)
    amounts = (_INV.total, _INV.reserved, _INV.allocation_ratio, stock.used)
    columns = select(_INV.resource_provider_id, _INV.resource_class_id, *amounts).select_from(stock.rows)
    return _among(columns, _INV.resource_provider_id, listed=listed)


@lru_cache(maxsize=2)
def _traits(*, listed: bool) -> PreparedStatement:
    return _among(select(_HAS.resource_provider_id, _HAS.trait_id), _HAS.resource_provider_id, listed=listed)
