"""Provider summaries: inventory, usage and traits of some trees' providers. Read last, for the trees of the answer."""

import math
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import NamedTuple

from sqlalchemy import select

from placement.domain.inventory import whole_capacity
from placement.store.connection.database import Transaction
from placement.store.connection.statements import RowsByIds
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


def tree_summaries(tx: Transaction, roots: Collection[int], members: dict[int, TreeMember] | None = None) -> Summaries:
    """Return the summaries of all providers of the trees with these roots; ``members`` if these are known already."""
    if not roots:
        return Summaries()
    if members is None:
        members = _members(tx, roots)
    pairs = _TRAITS.read(tx, members)
    members = _with_links(tx, members)
    stocks: dict[int, list[StockRow]] = defaultdict(list)
    for row in _stocks(keeps_usage=tx.database.keeps_usage).read(tx, members):
        stocks[row[0]].append(row[1:])
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
        tx.names.classes.names(tx.connection, {row[0] for rows in stocks.values() for row in rows}),
        tx.names.traits.names(tx.connection, {trait for _provider, trait in pairs}),
    )


def _with_links(tx: Transaction, members: dict[int, TreeMember]) -> dict[int, TreeMember]:
    """Add the parents and roots that have no root themselves, and so are in no tree: usually none."""
    links = {link: member[2] for member in members.values() for link in member[2:] if link not in members}
    tree_of = {link: root for link, root in links.items() if link is not None}
    rows = _BY_ID.read(tx, tree_of)
    added = {id_: TreeMember(id_, uuid, tree_of[id_], parent) for id_, uuid, parent in rows}
    return _with_links(tx, {**members, **added}) if added else members


def _members(tx: Transaction, roots: Collection[int]) -> dict[int, TreeMember]:
    # The same as TreeMember._make, but without a Python call for each of many thousands.
    members, root_ids = map(partial(tuple.__new__, TreeMember), _MEMBERS.read(tx, roots)), frozenset(roots)
    return {member[0]: member for member in members if member[2] in root_ids}


_RP = resource_providers.c
_INV = inventories.c
_HAS = resource_provider_traits.c

_BY_ID = RowsByIds(select(_RP.id, _RP.uuid, _RP.parent_provider_id), _RP.id, spread=MAX_BETWEEN)
_MEMBERS = RowsByIds(
    select(_RP.id, _RP.uuid, _RP.root_provider_id, _RP.parent_provider_id), _RP.root_provider_id, spread=math.inf
)
_TRAITS = RowsByIds(select(_HAS.resource_provider_id, _HAS.trait_id), _HAS.resource_provider_id, spread=MAX_BETWEEN)


@lru_cache(maxsize=2)
def _stocks(*, keeps_usage: bool) -> RowsByIds:
    stock = StockSource(keeps_usage=keeps_usage)
    amounts = (_INV.total, _INV.reserved, _INV.allocation_ratio, stock.used)
    columns = select(_INV.resource_provider_id, _INV.resource_class_id, *amounts).select_from(stock.rows)
    return RowsByIds(columns, _INV.resource_provider_id, spread=MAX_BETWEEN)
