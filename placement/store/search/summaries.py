"""Provider summaries: inventory, usage and traits of some trees' providers. Read last, for the trees of the answer.

The providers themselves are read earlier if all candidates are wanted and the search needs them as well.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any, NamedTuple

from sqlalchemy import Select, bindparam, select

from placement.domain.inventory import whole_capacity
from placement.store.connection.prepared import PreparedStatement, chunks
from placement.store.connection.unit_of_work import Transaction
from placement.store.search.ranges import LISTED, is_between
from placement.store.stock import StockSource
from placement.store.tables import inventories, resource_provider_traits, resource_providers

MAX_BETWEEN = 4
"""Providers are read as a range if it spans at most this many ids for each; otherwise they are too scattered."""


class TreeMember(NamedTuple):
    """A provider of a tree."""

    id: int
    uuid: str
    root_id: int
    parent_id: int | None


class StockRow(NamedTuple):
    """A provider's inventory and usage of a resource class."""

    class_id: int
    total: int
    reserved: int
    allocation_ratio: float
    used: int

    @property
    def capacity(self) -> int:
        """The amount that may be allocated in total."""
        return whole_capacity(self.total, self.reserved, self.allocation_ratio)


@dataclass(slots=True)
class Summaries:
    """The providers of some trees, in columns: an answer may have many thousands of them.

    ``stocks`` and ``traits`` (ids, ascending) are by provider id; stocks are plain tuples in the shape of StockRow.
    """

    members: dict[int, TreeMember] = field(default_factory=dict)
    stocks: Mapping[int, list[StockRow]] = field(default_factory=dict)
    traits: Mapping[int, list[int]] = field(default_factory=dict)
    class_names: Mapping[int, str] = field(default_factory=dict)
    trait_names: Mapping[int, str] = field(default_factory=dict)


class ProvidersOfTrees(NamedTuple):
    """The providers of some trees.

    Args:
        roots: the ids of the roots.
        members: the providers, by id.
        traits: (provider, trait) for each of their traits; other providers may be included.
    """

    roots: Collection[int]
    members: dict[int, TreeMember]
    traits: list[tuple[int, int]]


def providers_of_trees(
    tx: Transaction, roots: Collection[int], members: dict[int, TreeMember] | None = None
) -> ProvidersOfTrees:
    """Return the providers of the trees with these roots, of which there must be at least one.

    Args:
        tx: the transaction.
        roots: the root ids.
        members: all providers of these trees by id, if already read.
    """
    if members is None:
        members = _members(tx, roots)
    return ProvidersOfTrees(roots, members, _of_providers(tx, _traits, members))


def tree_summaries(tx: Transaction, roots: Collection[int], known: ProvidersOfTrees | None = None) -> Summaries:
    """Return the summaries of all providers of the trees with these roots.

    Args:
        tx: the transaction.
        roots: the root ids.
        known: the providers of these trees, and perhaps of others, if already read.
    """
    if not roots:
        return Summaries()
    known_roots, members, pairs = known or providers_of_trees(tx, roots)
    if len(known_roots) > len(roots):
        members = {id_: member for id_, member in members.items() if member.root_id in roots}
    members = _with_links(tx, members)
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


def _with_links(tx: Transaction, members: dict[int, TreeMember]) -> dict[int, TreeMember]:
    """Add the parents and roots that have no root themselves, and so are in no tree: usually none."""
    tree_of = {link: member[2] for member in members.values() for link in member[2:] if link not in members}
    tree_of.pop(None, None)
    rows = tx.tuples(_BY_ID, {"ids": sorted(tree_of)}) if tree_of else ()
    added = {id_: TreeMember(id_, uuid, tree_of[id_], parent) for id_, uuid, parent in rows}
    return _with_links(tx, {**members, **added}) if added else members


def _members(tx: Transaction, roots: Collection[int]) -> dict[int, TreeMember]:
    listed = len(roots) <= LISTED
    values: dict[str, Any] = {"ids": sorted(roots)} if listed else {"first": min(roots), "last": max(roots)}
    rows = tx.tuples(_providers(listed=listed), values)
    # The same as TreeMember._make, but without a Python call for each of many thousands.
    found = map(partial(tuple.__new__, TreeMember), rows)
    return {member[0]: member for member in found if listed or member[2] in roots}


def _of_providers(
    tx: Transaction, statement: Callable[..., PreparedStatement], providers: Collection[int]
) -> list[Any]:
    """Return the rows of a statement for some providers; others with ids in between may be included."""
    if len(providers) <= LISTED:
        return tx.tuples(statement(listed=True), {"ids": list(providers)})
    first, last = min(providers), max(providers)
    if last - first < MAX_BETWEEN * len(providers):
        return tx.tuples(statement(listed=False), {"first": first, "last": last})
    return [row for ids in chunks(sorted(providers)) for row in tx.tuples(statement(listed=True), {"ids": ids})]


def _grouped(rows: list[Any]) -> tuple[dict[int, list[StockRow]], set[int]]:
    """Group rows by provider id, the first column; also return all classes in them."""
    stocks: dict[int, list[StockRow]] = defaultdict(list)
    for row in rows:
        stocks[row[0]].append(row[1:])
    return stocks, {row[1] for row in rows}


_RP = resource_providers.c
_INV = inventories.c
_HAS = resource_provider_traits.c


_BY_ID = PreparedStatement(
    select(_RP.id, _RP.uuid, _RP.parent_provider_id).where(_RP.id.in_(bindparam("ids", expanding=True)))
)


def _among(statement: Select[Any], column: Any, *, listed: bool) -> PreparedStatement:
    condition = column.in_(bindparam("ids", expanding=True)) if listed else is_between(column, "first", "last")
    return PreparedStatement(statement.where(condition), by_key=listed)


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
