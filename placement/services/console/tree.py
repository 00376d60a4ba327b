"""A provider in its tree: which providers are drawn, what each has, who shares, who consumes."""

from collections import Counter, deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from operator import attrgetter
from types import MappingProxyType

from placement.domain.inventory import Inventory
from placement.domain.quantities import ResourceAmounts
from placement.domain.tree import subtree, upwards
from placement.services.console.searches import Excerpt
from placement.store.connection.database import Transaction, reads_anywhere
from placement.store.console import tree as store
from placement.store.console.stocks import DISABLED, ClassTotals, stocks_of_trees
from placement.store.console.tree import SHARES, PlacedAmount, ServedTree, Sharer, TreePart
from placement.store.providers import required_provider
from placement.store.search.names import Named


@dataclass(frozen=True, slots=True)
class Drawing:
    """The part of a tree to draw, by ids; ``hidden`` has how many descendants of a provider are not drawn anywhere."""

    top: int
    children: Mapping[int, list[int]]
    hidden: Mapping[int, int]
    is_whole: bool

    @property
    def drawn(self) -> list[int]:
        """All providers drawn."""
        return list(self.children)


def drawing(parents: Mapping[int, int | None], focus: int, *, max_providers: int, deepest: int) -> Drawing:
    """Choose what to draw: the whole tree if it fits, otherwise what is below ``focus``, nearest first.

    Siblings are drawn in the order of ``parents``, but those with children first.
    """
    below: dict[int, list[int]] = {id_: [] for id_ in parents}
    for id_, parent in parents.items():
        if parent in below:
            below[parent].append(id_)
    above = ancestors(parents, focus)
    whole = len(parents) <= max_providers and len(above) < deepest
    top = above[0] if whole and above else focus
    children = _drawn(below, top, max_providers=max_providers, deepest=deepest)
    sizes = Counter([ancestor for id_ in parents for ancestor in upwards(id_, parents)])
    hidden = {id_: sizes[id_] - 1 - sum(sizes[child] for child in drawn) for id_, drawn in children.items()}
    return Drawing(top, children, {id_: count for id_, count in hidden.items() if count > 0}, whole)


def ancestors(parents: Mapping[int, int | None], id_: int) -> list[int]:
    """Return a provider's ancestors, the root first."""
    above = [provider for provider in upwards(id_, parents) if provider in parents]
    return above[:0:-1]


def _drawn(below: Mapping[int, list[int]], top: int, *, max_providers: int, deepest: int) -> dict[int, list[int]]:
    children: dict[int, list[int]] = {top: []}
    waiting = deque([(top, 1)])
    while waiting:
        id_, depth = waiting.popleft()
        # Providers with children come first, like the large things in a box.
        for child in sorted(below[id_], key=lambda child: not below[child]) if depth < deepest else ():
            if len(children) >= max_providers:
                return children
            if child not in children:
                children[id_].append(child)
                children[child] = []
                waiting.append((child, depth + 1))
    return children


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


@dataclass(frozen=True, slots=True)
class Target:
    """The tree that a consumer could move to, and what it would hold of each provider there."""

    tree: Named
    allocations: Mapping[str, ResourceAmounts]


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeConsumer:
    """A consumer, what it holds in a tree, of how many providers, and since when (naive UTC, None if not recorded)."""

    uuid: str
    project_id: str
    user_id: str
    type: str | None
    since: datetime | None
    held: ResourceAmounts
    providers: int
    target: Target | None = None


def tree_consumer(rows: Sequence[PlacedAmount]) -> TreeConsumer:
    """Return the consumer whose amounts these are."""
    held: Counter[str] = Counter()
    for row in rows:
        held[row.class_name] += row.used
    first = rows[0]
    return TreeConsumer(
        uuid=first.consumer_uuid,
        project_id=first.project_id,
        user_id=first.user_id,
        type=first.consumer_type,
        since=min((row.since for row in rows if row.since), default=None),
        held=held,
        providers=len({row.provider_id for row in rows}),
    )


@dataclass(frozen=True, slots=True)
class ProviderInTree:
    """A provider (``focus``), the drawing of its tree, who shares with it, and who uses it or what is below.

    ``nodes`` are drawn, or on the ``path`` from the root; ``served`` are some of the ``served_count`` trees it shares
    with.
    """

    focus: DrawnProvider
    drawing: Drawing
    nodes: Mapping[int, DrawnProvider]
    size: int
    sharers: list[Sharer]
    served: list[ServedTree]
    served_count: int
    totals: list[ClassTotals]
    consumers: Excerpt[TreeConsumer]
    path: list[int]

    @property
    def is_root(self) -> bool:
        """Whether the provider is the root of its tree."""
        return not self.path

    @property
    def is_disabled(self) -> bool:
        """Whether nova has disabled the host."""
        return DISABLED in self.root.traits

    @property
    def is_drained(self) -> bool:
        """Whether everything that the tree has is reserved."""
        return bool(self.totals) and all(stock.capacity <= 0 for stock in self.totals)

    @property
    def root(self) -> DrawnProvider:
        """The root of the tree."""
        return self.nodes[self.path[0]] if self.path else self.focus


@reads_anywhere
def provider_in_tree(
    tx: Transaction, uuid: str, *, levels: Mapping[str, str], first: int, limit: int
) -> ProviderInTree:
    """Return a provider with its tree; ``levels`` maps names of levels to traits. ProviderNotFound if there is none."""
    provider = required_provider(tx, uuid)
    parents = store.parents_by_name(tx, provider.root_id)
    path = ancestors(parents, provider.id)
    drawn = drawing(parents, provider.id, max_providers=DRAWN, deepest=DEEPEST)
    counts = store.consumer_counts(tx, drawn.drawn)
    nodes = drawn_providers(tx, {*drawn.drawn, *path}, levels, consumers=counts)
    sharing = [id_ for id_ in drawn.drawn if SHARES in nodes[id_].traits]
    served, served_count = store.served(tx, sharing, root_id=provider.root_id, limit=RELATED)
    inside = subtree(parents, provider.id)
    is_all = not path or len(inside) > MAX_NAMED
    part = TreePart(provider.root_id, None if is_all else inside)
    amounts, has_more = store.placed_amounts(tx, part, first=first, limit=limit)
    consumers = [tree_consumer([*rows]) for _uuid, rows in groupby(amounts, key=attrgetter("consumer_uuid"))]
    return ProviderInTree(
        focus=nodes[provider.id],
        drawing=drawn,
        nodes=nodes,
        size=len(parents),
        sharers=store.sharers(tx, drawn.drawn, root_id=provider.root_id, limit=RELATED),
        served=served,
        served_count=served_count,
        totals=stocks_of_trees(tx, [provider.root_id]).get(provider.root_id, []),
        consumers=Excerpt(consumers, has_more, None),
        path=path,
    )


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
            stocks=[
                ClassTotals(class_name, inventory.total, inventory.reserved, max(0, inventory.capacity), used)
                for class_name, (inventory, used) in inventories.items()
            ],
            inventories={class_name: inventory for class_name, (inventory, _) in inventories.items()},
            traits=traits,
            aggregates=sorted(read.aggregates.get(id_, ())),
            consumers=consumers.get(id_, 0),
        )
    return nodes
