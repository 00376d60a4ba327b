"""The trees of a cloud as the planner sees them, built in detail from its columns; and those that are alike.

What the planner proposes in one host, it proposes in all that it can tell apart only by id. To compare hosts, each has
a canonical form like the trees of a search, but with all that the planner knows of it, including what is free and used.
The same form gives the same result in any snapshot, so what is kept by form can never be stale. Equal stocks and sets
of traits are one object, which saves building it again, and lets canonical forms compare fast.
"""

from collections import ChainMap, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from placement.allocators import natural_order
from placement.candidates.compose.proposals import Lock, Proposal, Proposals
from placement.candidates.compose.slots import CanonicalForm, Memo
from placement.candidates.fragmentation import DeviceJudge
from placement.candidates.tree_reader import Layout, TreeReader
from placement.cloud.derived import TIMELESS, KeptInState
from placement.cloud.providers import Ints, places_in
from placement.domain.search_plan import Plan
from placement.domain.tree import NamedMember, Overlay, PlannerTree, ProviderStocks, Stock, Tree

if TYPE_CHECKING:
    from placement.candidates.planner.question import PlannerQuestion

MAX_BATCH = 64
"""The most trees built together: few enough to waste little."""

Value = TypeVar("Value")

ProviderNames = Mapping[int, tuple[str, str | None]]
"""Provider -> its uuid and its name, if it has one."""

NamesIn = Callable[[Collection[int]], Mapping[int, ProviderNames]]
"""Returns the names in the trees with some roots, by root."""


@dataclass(frozen=True, slots=True)
class SeenCloud:
    """What a snapshot shows of the cloud for one request: its trees, and what was derived from them.

    ``levels`` has the ids of the traits of its levels, outermost first, None for one that does not exist;
    ``trait_names`` also those of rules about devices. ``node_classes`` are all classes if a profile names families.
    """

    reader: TreeReader
    levels: Sequence[int | None]
    class_names: Mapping[int, str]
    trait_names: Mapping[int, str]
    names: NamesIn
    kept: KeptInState
    node_classes: Sequence[str] = ()
    judge: DeviceJudge | None = None

    def classes(self, names: Collection[str] | None) -> Mapping[int, str]:
        """Return by id those of some classes, or all, that anybody has."""
        return {id_: name for id_, name in self.class_names.items() if names is None or name in names}


class TreesInDetail:
    """The trees of a snapshot in all detail that decides, each built once; None for all classes."""

    def __init__(self, cloud: SeenCloud, classes: Collection[str] | None = None) -> None:
        self._cloud = cloud
        self._serving = cloud.reader.serving
        self._providers = self._serving.columns.providers
        self._classes = cloud.classes(classes)
        self._equal_stocks: dict[object, ProviderStocks] = {}
        self._equal_traits: dict[int, frozenset[str]] = {}
        self._built: dict[tuple[int, frozenset[int]], PlannerTree] = {}
        self.members: dict[int, NamedMember] = {}
        """All providers of the trees built so far."""

    def built(self, trees: Collection[Tree]) -> list[PlannerTree]:
        """Return trees, each with those that share with it."""
        keys = [(tree.root, _roots(tree)) for tree in trees]
        if unbuilt := {key for key in keys if key not in self._built}:
            self._build(unbuilt)
        return [self._built[key] for key in keys]

    def has(self, tree: Tree) -> bool:
        """Tell whether a tree has been built."""
        return (tree.root, _roots(tree)) in self._built

    def _build(self, keys: Collection[tuple[int, frozenset[int]]]) -> None:
        """Build trees, given their roots, and those of all that share with each as well."""
        inside = self._inside({root for _root, roots in keys for root in roots})
        at = self._providers.positions_of_trees(inside)
        parents, traits, stocks = self._providers.parents_of(at), self._traits(at), self._stocks(at)
        layout = Layout(self._providers, at, self._serving.places_of(self._cloud.levels))
        positions, names = layout.positions, self._cloud.names(inside.keys())
        for root, providers in inside.items():
            for provider in providers:
                uuid, name = names[root][provider]
                self.members[provider] = NamedMember(provider, uuid, root, parents[provider], name)
        for root, roots in keys:
            own, providers = inside[root], [provider for part in sorted(roots) for provider in inside[part]]
            self._built[root, roots] = PlannerTree(
                root=root,
                parents=_only(providers, parents),
                names={provider: self.members[provider].name for provider in providers},
                traits=_only(providers, traits),
                stocks=_only(providers, stocks),
                positions=_only(providers, positions),
                foreign_providers=frozenset(providers) - {*own} if len(roots) > 1 else frozenset(),
            )

    def _inside(self, roots: Collection[int]) -> dict[int, list[int]]:
        providers, indices = self._providers, self._providers.tree_indices(sorted(roots))
        indices = indices[indices >= 0]
        bounds = zip(providers.starts[indices].tolist(), providers.starts[indices + 1].tolist(), strict=True)
        inside = [providers.ids[start:end].tolist() for start, end in bounds]
        return dict(zip(providers.roots[indices].tolist(), inside, strict=True))

    def _stocks(self, at: Ints) -> dict[int, ProviderStocks]:
        """Return the stocks of those providers that have any, one object for all that are equal."""
        columns, classes = self._serving.columns, self._classes
        rows: dict[int, list[tuple[int, ...]]] = defaultdict(list)
        for class_id in sorted(classes):
            stock = columns.stock(class_id)
            of_class = places_in(stock.at, at)
            of_class = of_class[of_class >= 0]
            amounts = [stock.capacity[of_class].astype(np.int64), *[column[of_class] for column in stock[2:]]]
            ids = self._providers.ids[stock.at[of_class]].tolist()
            for provider, *row in zip(ids, *[column.tolist() for column in amounts], strict=True):
                rows[provider].append((class_id, *row))
        for held in {tuple(of_provider) for of_provider in rows.values()} - self._equal_stocks.keys():
            stocks = [(classes[class_id], Stock(*amounts)) for class_id, *amounts in held]
            self._equal_stocks[held] = ProviderStocks(stocks)
        return {provider: self._equal_stocks[tuple(of_provider)] for provider, of_provider in rows.items()}

    def _traits(self, at: Ints) -> dict[int, frozenset[str]]:
        """Return the traits of those providers that have any."""
        bits: dict[int, int] = defaultdict(int)
        for number, trait_id in enumerate(self._cloud.trait_names):
            owners = at[self._serving.sets.with_trait(trait_id)[at]]
            for provider in self._providers.ids[owners].tolist():
                bits[provider] |= 1 << number
        names = [*self._cloud.trait_names.values()]
        for of_provider in {*bits.values()} - self._equal_traits.keys():
            held = [name for number, name in enumerate(names) if of_provider >> number & 1]
            self._equal_traits[of_provider] = frozenset(held)
        return {provider: self._equal_traits[of_provider] for provider, of_provider in bits.items()}


def _only(providers: Collection[int], values: Mapping[int, Value]) -> dict[int, Value]:
    return {provider: values[provider] for provider in providers if provider in values}


def _roots(tree: Tree) -> frozenset[int]:
    """Return the roots of a tree and of the trees that share with it, which have places, too."""
    if not tree.root_of:
        return frozenset([tree.root])
    sharing = [tree.root_of[provider] for options in tree.options for provider in options if provider in tree.sharing]
    return frozenset([tree.root, *sharing])


def with_stocks(tree: Tree, plan: Plan, changed: Mapping[int, Mapping[str, Stock]]) -> Tree:
    """Return a tree as it is if some providers have other stocks: with the options that have room, and their room."""

    def has_room(provider: int, resources: Collection[tuple[str, int]]) -> bool:
        stocks = changed.get(provider)
        return stocks is None or all([amount <= stocks[name].free for name, amount in resources])

    options = [
        [provider for provider in providers if demand.ignores_usage or has_room(provider, demand.resources)]
        for demand, providers in zip(plan.demands, tree.options, strict=True)
    ]
    room = {
        place: float(min(stock.free, stock.max_unit))
        for place in [(provider, name) for provider in changed for name in plan.contended]
        if place in tree.room and (stock := changed[place[0]].get(place[1]))
    }
    # The room mapping is shared by all trees that were read together, so it is overlaid rather than copied.
    return replace(tree, options=options, room=ChainMap(room, tree.room) if room else tree.room)


class HostSketch(NamedTuple):
    """A host as a sketch: its canonical form, and the provider that each number in it stands for."""

    form: CanonicalForm
    providers: Sequence[int]


def host_sketch(plan: Plan, tree: Tree, details: PlannerTree) -> HostSketch:
    """Sketch a host with those that share with it, by the order of ids and names; for the same levels of places."""
    providers = sorted(details.parents)
    numbers: dict[int | None, int] = {provider: number for number, provider in enumerate(providers)}
    foreign, held = details.foreign_providers, details.held
    form = (
        natural_order([details.names[provider] for provider in providers]),
        tuple([numbers.get(parent) for parent in map(details.parents.get, providers)]),
        tuple(map(details.traits.get, providers)),
        tuple(map(details.stocks.get, providers)),
        (numbers[details.root], tuple([provider in foreign for provider in providers])) if foreign else None,
        tuple([provider in held for provider in providers]) if held else None,
        tuple([tuple([numbers[provider] for provider in row]) for row in tree.options]),
        tuple([tree.met.get(provider, 0) for provider in providers]) if plan.trait_sets else (),
        tuple([tree.room.get((provider, name)) for name in plan.contended for provider in providers]),
    )
    return HostSketch(form, providers)


def read_off(proposal: Proposal, model: HostSketch, host: HostSketch) -> Proposal:
    """Read a proposal off for another host of the same form."""
    numbers = dict(zip(model.providers, host.providers, strict=True))
    return Proposal(
        root=numbers[proposal.root],
        amounts={numbers[provider]: amounts for provider, amounts in proposal.amounts.items()},
        mappings={suffix: tuple([numbers[id_] for id_ in served]) for suffix, served in proposal.mappings.items()},
        touched=proposal.touched,
        locks=tuple([Lock(numbers[lock.provider], lock.resource_class) for lock in proposal.locks]),
        group_score=proposal.group_score,
    )


BYTES_OF_PROVIDER = 700
"""What a host takes for each of its providers, its form and the proposals in it included."""


class FormComposer:
    """Composes the proposals for one request, tree by tree; what a form gave is kept, unless fragmentation counts."""

    def __init__(self, question: "PlannerQuestion", overlay: Overlay) -> None:
        self._details = question.details
        self._budget = question.budget
        self._composer = question.composer
        self._kept = None if question.cloud.judge else question.cloud.kept.derived
        self._overlay = overlay
        self._models: Memo[tuple[HostSketch, Proposals]] = Memo()
        """By canonical form, a host and its proposals."""
        self.details_by_root: dict[int, PlannerTree] = {}
        """The trees composed in, by root id."""
        self.exhausted: dict[int, bool] = {}
        """By root, the trees where nothing was found, and whether that is proved."""
        self._cut_off: set[int] = set()

    @property
    def complete(self) -> bool:
        """Whether the last search in each tree ran to its end."""
        return not self._cut_off

    def composed(self, tree: Tree) -> Sequence[Proposal]:
        """Return the proposals in a tree."""
        (as_it_is,) = self._details.built([tree])
        details = as_it_is.under(self._overlay)
        return self.proposals_in(tree, details, is_as_it_is=details is as_it_is)

    def rule_out(self, root: int) -> None:
        """Record that a tree is exhausted."""
        self.exhausted[root] = True
        self._cut_off.discard(root)

    def proposals_in(self, tree: Tree, details: PlannerTree, *, is_as_it_is: bool = False) -> Sequence[Proposal]:
        """Return the proposals in one tree with these details, or those that were found in one of the same form."""
        kept = self._kept
        if kept is None and not is_as_it_is:
            return self._noted(details, self._composer.proposals(tree, details, self._budget()))
        host = host_sketch(self._composer.plan, tree, details)
        name = "proposals", self._composer.written, host.form
        model = self._models.get(host.form) if is_as_it_is else None
        if model is None and kept is not None and (earlier := kept.find(TIMELESS, name)) is not None:
            model = earlier.value
        if model is None:
            model = host, self._composer.proposals(tree, details, self._budget())
            # If it was cut off, a longer search might find more.
            if kept is not None and model[1].complete:
                kept.keep(TIMELESS, name, model, size=BYTES_OF_PROVIDER * len(host.providers))
            if is_as_it_is:
                # Even if it was cut off: to search each tree of this form would use up as many steps again.
                self._models.remember(host.form, model)
        proposals = self._noted(details, model[1])
        return proposals if model[0] is host else [read_off(proposal, model[0], host) for proposal in proposals]

    def _noted(self, details: PlannerTree, result: Proposals) -> Sequence[Proposal]:
        """Record what was found in a tree, and return it."""
        root = details.root
        self.details_by_root[root] = details
        (self._cut_off.discard if result.complete else self._cut_off.add)(root)
        if not result.proposals:
            self.exhausted[root] = result.complete
        return result.proposals
