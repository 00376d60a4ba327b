"""A provider in its tree: what each provider has, who shares, who consumes."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from types import MappingProxyType
from typing import NamedTuple

from placement.domain.drawn_tree import Drawing, ancestors, drawing
from placement.domain.inventory import Inventory
from placement.domain.provider import subtree
from placement.services.console.searches import Excerpt
from placement.store.connection.database import Transaction, reads_anywhere
from placement.store.console import tree as store
from placement.store.console.stocks import DISABLED, ClassTotals, stocks_of_trees
from placement.store.console.tree import SHARES, PlacedAmount, ServedTree, Sharer, TreePart
from placement.store.providers import required_provider

DRAWN, DEEPEST, RELATED = 100, 10, 50
NOBODY: Mapping[int, int] = MappingProxyType({})

MAX_NAMED = 10_000
"""The most providers to list in a statement; for larger subtrees the consumers of the whole tree are shown."""


@dataclass(frozen=True, slots=True)
class DrawnProvider:
    """A provider in the drawing; ``level`` is the name of the level whose place it anchors, or empty."""

    id: int
    uuid: str
    name: str
    generation: int
    level: str
    stocks: list[ClassTotals]
    inventories: dict[str, Inventory]
    traits: list[str]
    aggregates: list[str]
    consumers: int

    @property
    def load(self) -> float | None:
        """The load of the most loaded class (1.0: full); None without any capacity."""
        return max((stock.used / stock.capacity for stock in self.stocks if stock.capacity), default=None)


class TreeHolder(NamedTuple):
    """A consumer that uses a tree: from how many providers, since when, and how much of each class in total."""

    consumer_uuid: str
    project_id: str
    consumer_type: str | None
    providers: int
    since: datetime | None
    held: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class ProviderInTree:
    """A provider (``focus``), the drawing of its tree, who shares with it, and who uses it or what is below.

    ``nodes`` are the drawn providers and those on the ``path`` from the root, excluding itself; ``sharers`` share with
    what is drawn; ``served`` are some of the ``served_count`` trees that it shares with; ``totals`` the stocks of the
    whole tree.
    """

    focus: DrawnProvider
    drawing: Drawing
    nodes: Mapping[int, DrawnProvider]
    size: int
    sharers: list[Sharer]
    served: list[ServedTree]
    served_count: int
    totals: list[ClassTotals]
    holders: Excerpt[TreeHolder]
    path: list[int]

    @property
    def is_root(self) -> bool:
        """Whether the provider is the root of its tree."""
        return not self.path

    @property
    def is_disabled(self) -> bool:
        """Whether nova has disabled the host."""
        return DISABLED in (self.nodes[self.path[0]] if self.path else self.focus).traits

    @property
    def is_drained(self) -> bool:
        """Whether everything that the tree has is reserved."""
        return bool(self.totals) and all(stock.capacity <= 0 for stock in self.totals)

    @property
    def root_uuid(self) -> str:
        """The uuid of the tree's root."""
        return self.nodes[self.path[0]].uuid if self.path else self.focus.uuid

    @property
    def root_name(self) -> str:
        """The name of the tree's root."""
        return self.nodes[self.path[0]].name if self.path else self.focus.name


@reads_anywhere
def provider_in_tree(
    tx: Transaction, uuid: str, *, levels: Mapping[str, str], first: int, limit: int
) -> ProviderInTree:
    """Return a provider with its tree; ``levels`` maps names of levels to the traits of their places.

    Raises:
        ProviderNotFound: there is no such provider.
    """
    provider = required_provider(tx, uuid)
    parents = store.parents_by_name(tx, provider.root_id)
    path = ancestors(parents, provider.id)
    drawn = drawing(parents, provider.id, max_providers=DRAWN, deepest=DEEPEST)
    counts = store.consumer_counts(tx, drawn.drawn)
    nodes = drawn_providers(tx, {*drawn.drawn, *path}, levels, consumers=counts)
    sharing = [id_ for id_ in drawn.drawn if SHARES in nodes[id_].traits]
    served, served_count = store.served(tx, sharing, root_id=provider.root_id, limit=RELATED)
    part = _part(parents, provider.root_id, provider.id)
    amounts, has_more = store.placed_amounts(tx, part, first=first, limit=limit)
    return ProviderInTree(
        focus=nodes[provider.id],
        drawing=drawn,
        nodes=nodes,
        size=len(parents),
        sharers=store.sharers(tx, drawn.drawn, root_id=provider.root_id, limit=RELATED),
        served=served,
        served_count=served_count,
        totals=stocks_of_trees(tx, [provider.root_id]).get(provider.root_id, []),
        holders=Excerpt([*_holders(amounts)], has_more, None),
        path=path,
    )


def _holders(amounts: Sequence[PlacedAmount]) -> Iterator[TreeHolder]:
    """Yield the consumers that hold amounts, given consumer by consumer."""
    for uuid, of_consumer in groupby(amounts, key=lambda row: row.consumer_uuid):
        rows, held = [*of_consumer], Counter[str]()
        for row in rows:
            held[row.class_name] += row.used
        since = min([row.since for row in rows if row.since is not None], default=None)
        number = len({row.provider_id for row in rows})
        yield TreeHolder(uuid, rows[0].project_id, rows[0].consumer_type, number, since, held)


def _part(parents: Mapping[int, int | None], root_id: int, focus: int) -> TreePart:
    """Return a provider's subtree."""
    inside = subtree(parents, focus)
    return TreePart(root_id, None if focus == root_id or len(inside) > MAX_NAMED else inside)


def drawn_providers(
    tx: Transaction, ids: Collection[int], levels: Mapping[str, str], *, consumers: Mapping[int, int] = NOBODY
) -> dict[int, DrawnProvider]:
    """Return providers as drawn, by id, within the caller's transaction; ``consumers`` counts the consumers of each."""
    read = store.details(tx, ids)
    nodes: dict[int, DrawnProvider] = {}
    for id_, uuid, name, generation, _parent, _root in read.providers:
        traits = sorted(read.trait_names[trait] for trait in read.traits.get(id_, ()))
        inventories = {
            read.class_names[row[0]]: (Inventory(*row[1:7]), int(row[7])) for row in read.stocks.get(id_, ())
        }
        nodes[id_] = DrawnProvider(
            id=id_,
            uuid=uuid,
            name=name or uuid,
            generation=generation,
            level=next((level for level, trait in levels.items() if trait in traits), ""),
            stocks=[_stock(class_name, *have) for class_name, have in inventories.items()],
            inventories={class_name: inventory for class_name, (inventory, _) in inventories.items()},
            traits=traits,
            aggregates=sorted(read.aggregates.get(id_, ())),
            consumers=consumers.get(id_, 0),
        )
    return nodes


def _stock(class_name: str, inventory: Inventory, used: int) -> ClassTotals:
    return ClassTotals(class_name, inventory.total, inventory.reserved, max(0, inventory.capacity), used)
