"""The headroom of one request in a cloud: how many copies fit where, what the other trees lack, what is stranded.

Copies of a request with rules about places are counted tree by tree, by packing what its proposals take.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from placement.allocators import Budget
from placement.allocators.bundle_packing import BundlePacking, Copies, exactly, undominated
from placement.candidates.compose.proposals import Proposal, ProposalComposer
from placement.candidates.explain.explanation import SplitAmount, split_amounts
from placement.candidates.headroom.counting import CopyCounter, CountedTrees, in_all_trees, total
from placement.candidates.headroom.division import formula_for
from placement.candidates.headroom.forms import CloudInForms
from placement.candidates.planner.planner_search import PlannerSearch
from placement.candidates.planner.planner_trees import host_sketch, with_stocks
from placement.candidates.planner.question import PlannerQuestion
from placement.cloud.providers import Flags, Ints, distinct_rows
from placement.domain.planner_request import PlannerRequest
from placement.domain.search_plan import CandidateRequest, Plan, plan_for
from placement.domain.tree import AS_IT_IS, Overlay, PlannerTree, Tree, upwards

STEPS = 60_000
"""How many steps packing may take for one request."""

MAX_CLASSES = 62
"""How many classes of a request are told apart in what trees lack."""

MAX_WAYS = 250
"""How many ways to serve a request with rules in a tree are packed: each is a level of the search."""

MAX_PLANNED = 32
"""How many times copies are planned one after the other in a tree; repeating the same way counts once."""

MAX_TRIES, COMPOSING_EVERY = 600, 5
"""How often to compose for one request, and how many tries it counts as to compose all ways in a tree.

Trees not reached by then get bounds.
"""

STEPS_OF_A_TREE, STEPS_OF_PACKING = 20_000, 200_000

READ_TOGETHER = 500
"""How many trees are read in detail at a time."""

_PlaceOrClass = tuple[int, str]
"""A cell: a provider and a class it has; or, without a class, being in the place whose anchor the provider is."""

_IN_IT = ""

CountedRequest = CandidateRequest | PlannerRequest


@dataclass(frozen=True, slots=True)
class HostModel:
    """Trees that differ only in what is in use: the root of one, how many there are, and the copies in an empty one."""

    like: int
    trees: int
    per_tree: Copies


@dataclass(frozen=True, slots=True)
class Headroom:
    """How many more of a request fit, counting what trees share once, and into how many trees.

    ``lacking`` has how many of the others lack which classes, most first: none if each alone would suffice, but what is
    free does not lie together. ``stranded`` is what is free there, by class; ``split`` what no single provider has.
    """

    copies: Copies
    with_room: int
    lacking: Mapping[tuple[str, ...], int]
    stranded: Mapping[str, int]
    counted: Sequence[CountedTrees]
    split: Sequence[SplitAmount] = ()

    def trees(self) -> dict[int, Copies]:
        """Return for each tree with room, by root, how many fit there if it had all that is shared to itself."""
        trees = dict[int, Copies]()
        for of_form in [of_form.chosen(of_form.max_copies > 0) for of_form in self.counted]:
            columns = of_form.trees.roots.tolist(), of_form.least.tolist(), of_form.max_copies.tolist()
            trees |= {root: Copies(*bounds) for root, *bounds in zip(*columns, strict=True)}
        return trees

    def among(self, roots: Collection[int]) -> Copies:
        """Return how many fit into some trees together, counting what they share once."""
        return in_all_trees(self.counted, among=roots)

    @property
    def without_room(self) -> int:
        """How many trees could serve the request if they were empty enough, but have no room."""
        return sum(self.lacking.values())


def headroom(counter: CopyCounter, placed: "PlacedCopies | None" = None) -> Headroom:
    """Return how many more of a request fit, with the rules about places if any are ``placed``. O(trees) mostly."""
    plan, cloud, budget = counter.plan, counter.cloud, Budget(STEPS)
    all_counted = [counter.counted(trees, budget) for trees in cloud.forms]
    counted = [of_form for of_form in all_counted if of_form is not None]
    copies = in_all_trees(counted)
    if placed is not None:
        counted = as_placed(counted, placed)
        with_rules, limit = in_all_trees(counted), copies.max_count
        copies = Copies(min(limit, with_rules.least), min(limit, with_rules.max_count))
    lacking: Counter[tuple[str, ...]] = Counter()
    stranded: Counter[str] = Counter()
    for of_form in counted:
        if not of_form.max_copies.all():
            is_full = of_form.max_copies == 0
            lacking.update(_lacking(plan, cloud, of_form, is_full))
            for name in _classes(plan):
                if of_form.trees.has(class_id := cloud.ids.classes[name]):
                    stranded[name] += total(cloud.free_in_trees[class_id][of_form.trees.trees[is_full]])
    sharing = np.array([pool.position for pool in cloud.pools.values()], dtype=np.int64)
    return Headroom(
        copies=copies,
        with_room=sum([int(np.count_nonzero(of_form.max_copies)) for of_form in counted]),
        # No class named comes last among those that as many trees lack.
        lacking=dict(sorted(lacking.items(), key=lambda lack: (-lack[1], not lack[0], lack[0]))),
        stranded=dict(sorted(stranded.items())),
        counted=counted,
        split=[*split_amounts(plan, cloud.columns, cloud.ids.classes, sharing=sharing)]
        if lacking or not counted
        else (),
    )


def _lacking(plan: Plan, cloud: CloudInForms, counted: CountedTrees, is_full: Flags) -> Counter[tuple[str, ...]]:
    """Return how many full trees lack which classes: those that are short whatever there is of the others."""
    without_traits, names, classes = replace(plan, trait_sets=()), _classes(plan)[:MAX_CLASSES], cloud.ids.classes
    sets, trees = np.zeros(np.count_nonzero(is_full), dtype=np.int64), counted.trees.chosen(is_full)
    for bit, name in enumerate(names):
        slots = [
            replace(slot, amounts=tuple([amount for amount in slot.amounts if amount[0] == classes[name]]))
            for slot in counted.slots
        ]
        # Of the slots that ask for nothing else, only groups matter: where they may be, and whom they must not meet.
        slots = [slot for slot in slots if slot.amounts or slot.suffix]
        copies = formula_for(without_traits, slots, counted.trees.form, {}).alone(trees)
        sets |= (copies == 0).astype(np.int64) << bit
    lacking, numbers = np.unique(sets, return_counts=True)
    lacked = [tuple([name for bit, name in enumerate(names) if bits >> bit & 1]) for bits in lacking.tolist()]
    return Counter(dict(zip(lacked, numbers.tolist(), strict=True)))


def _classes(plan: Plan) -> list[str]:
    return sorted({name for slot in plan.slots for name, _amount in slot.resources})


def models(
    counter: CopyCounter, counted: Sequence[CountedTrees], placed: "PlacedCopies | None" = None
) -> list[HostModel]:
    """Return what one more of each model of tree would be good for, the best first."""
    budget, models = Budget(STEPS), list[HostModel]()
    for of_form in counted:
        numbers, firsts = of_form.trees.models
        empty = counter.counted(firsts, budget)
        if empty is not None:
            columns = firsts.roots.tolist(), numbers, empty.least.tolist(), empty.max_copies.tolist()
            models += [HostModel(like, number, Copies(*bounds)) for like, number, *bounds in zip(*columns, strict=True)]
    if placed is not None:
        copies = placed.in_empty({model.like: model.per_tree.max_count for model in models})
        models = [replace(model, per_tree=copies[model.like]) for model in models]
    return sorted(models, key=lambda model: (-model.per_tree.least, model.like))


def counted_plan(request: CountedRequest) -> Plan:
    """Return the plan of a request, without its rules about places if it ``has_rules``."""
    if isinstance(request, CandidateRequest):
        return plan_for(request)
    plan = plan_for(replace(request.plain, same_subtree=request.same_subtree))
    counts = {group.suffix: 1 if group.everything or group.per_subtree else group.count for group in request.groups}
    return replace(plan, slots=tuple([slot for slot in plan.slots for _ in range(counts[slot.suffix])]))


def has_rules(request: CountedRequest) -> bool:
    """Tell whether a request says more than slots can, so that the copies of its plan are only an upper bound."""
    if isinstance(request, CandidateRequest):
        return False
    places = [rule.required for rule in request.affinity] + [rule.required for rule in request.within]
    devices = [group.everything or group.per_subtree or group.device is not None for group in request.groups]
    return any(places) or any(devices) or bool(request.exclusive or request.avoided_trees or request.paths)


def all_together(requests: Iterable[CountedRequest]) -> CandidateRequest:
    """Return a request that names everything the given requests name."""
    plain = [request.plain if isinstance(request, PlannerRequest) else request for request in requests]
    return CandidateRequest(
        groups=tuple([group for request in plain for group in request.groups]),
        root_required=frozenset[frozenset[str]]().union(*[request.root_required for request in plain]),
        root_forbidden=frozenset[str]().union(*[request.root_forbidden for request in plain]),
    )


def as_placed(counted: Sequence[CountedTrees], placed: "PlacedCopies") -> list[CountedTrees]:
    """Return how often trees can serve a request with rules about places; pools no longer bound it."""
    kept = [trees.chosen(~np.isin(trees.trees.roots, [*placed.avoided])) for trees in counted]
    kept = [trees for trees in kept if len(trees.max_copies)]
    # Of those alike in their kind, and in their copies without rules, one is counted.
    distinct = [distinct_rows([placed.kinds(trees.trees.trees), trees.max_copies]) for trees in kept]
    bounds: dict[int, int] = {}
    for trees, (_rows, _numbers, first) in zip(kept, distinct, strict=True):
        bounds.update(zip(trees.trees.roots[first].tolist(), trees.max_copies[first].tolist(), strict=True))
    copies_of = placed.in_trees({root: bound for root, bound in bounds.items() if bound})
    placed_trees = []
    for trees, (_rows, numbers, first) in zip(kept, distinct, strict=True):
        roots = trees.trees.roots[first].tolist()
        copies = np.array([copies_of.get(root, exactly(0)) for root in roots], dtype=np.int64)[numbers]
        placed_trees.append(replace(trees, least=copies[:, 0], max_copies=copies[:, 1], pooled=()))
    return placed_trees


@dataclass
class PlacedCopies:
    """Counts the copies of one request with rules about places, in a snapshot under an overlay.

    ``every`` composes up to ``MAX_WAYS`` proposals, if a composer can; ``steps`` limits composing. ``emptied`` returns
    the overlay under which some trees, by root, are empty; ``like`` has those that hypothetical trees are modelled on.
    """

    question: PlannerQuestion
    every: ProposalComposer | None
    steps: Budget
    overlay: Overlay
    emptied: Callable[[Collection[int]], Overlay]
    like: Mapping[int, int]
    kind_of_tree: Ints
    _packing: Budget = field(default_factory=lambda: Budget(STEPS_OF_PACKING))
    _tries: Budget = field(default_factory=lambda: Budget(MAX_TRIES))
    _copies_by_form: dict[object, Copies] = field(default_factory=dict)

    @cached_property
    def _from_each(self) -> Mapping[str, int]:
        """How much of each class a copy takes from one provider at most; empty where amounts alone do not decide."""
        request = self.question.request
        open_ended = [group.everything or group.per_subtree or group.device is not None for group in request.groups]
        # An exclusive request depends on whether anything is in use.
        if request.exclusive or request.paths or any(open_ended):
            return {}
        amounts: Counter[str] = Counter()
        for group in request.groups:
            amounts.update({name: group.count * amount for name, amount in group.group.resources.items()})
        return amounts

    @property
    def avoided(self) -> Collection[int]:
        """The roots of trees that the request leaves out."""
        return self.question.avoided

    def together(self, limit: int) -> int:
        """Return a lower bound for all trees together if there are sharing providers: plan copies until none fits."""
        if not self.question.has_sharing:
            return 0
        overlay = self.overlay
        for copies in range(min(limit, MAX_PLANNED)):
            proposal = next(PlannerSearch(self.question, overlay).proposals(), None)
            if proposal is None:
                return copies
            overlay = overlay.taking(proposal.amounts, held=[lock.provider for lock in proposal.locks])
        return min(limit, MAX_PLANNED)

    def kinds(self, trees: Ints) -> Ints:
        """Return the kind of each tree; if there are sharing providers, each tree is a kind of its own."""
        return trees if self.question.has_sharing else self.kind_of_tree[trees]

    def in_trees(self, bounds: Mapping[int, int]) -> dict[int, Copies]:
        """Return how many copies fit into trees, by root, given how many their sums allow."""
        own_bounds = {root: bound for root, bound in bounds.items() if root not in self.like}
        copies = self._counted(self.overlay, own_bounds)
        bounds_like = {self.like[root]: bound for root, bound in bounds.items() if root in self.like}
        empty = self.in_empty(bounds_like) if bounds_like else {}
        return copies | {root: empty[self.like[root]] for root in bounds if root in self.like}

    def in_empty(self, bounds: Mapping[int, int]) -> dict[int, Copies]:
        """Return how many copies would fit into trees like these if they were empty, by root."""
        roots = {root: self.like.get(root, root) for root in bounds}
        overlay = self.emptied(sorted({*roots.values()}))
        copies = self._counted(overlay, {roots[root]: bound for root, bound in bounds.items()})
        return {root: copies[model] for root, model in roots.items()}

    def _counted(self, overlay: Overlay, bounds: Mapping[int, int]) -> dict[int, Copies]:
        copies = dict.fromkeys(bounds, exactly(0))
        question, reader = self.question, self.question.reader(overlay)
        roots = sorted(bounds)
        for first in range(0, len(roots), READ_TOGETHER):
            trees = reader.trees_of(roots[first : first + READ_TOGETHER])
            for tree, details in zip(trees, question.details.built(trees), strict=True):
                copies[tree.root] = self._in_tree(tree, details.under(overlay), bounds[tree.root])
        return copies

    def _in_tree(self, tree: Tree, details: PlannerTree, bound: int) -> Copies:
        """Return how many copies fit into one tree; trees of the same canonical form have the same number."""
        if details.foreign_providers:
            return self._copies(tree, details, bound)
        if self._from_each:
            plan = self.question.composer.plan
            tree, details = under(beyond_reach(self._from_each, details, bound), plan, tree, details)
        form = (host_sketch(self.question.composer.plan, tree, details).form, bound)
        if form not in self._copies_by_form:
            self._copies_by_form[form] = self._copies(tree, details, bound)
        return self._copies_by_form[form]

    def _copies(self, tree: Tree, details: PlannerTree, bound: int) -> Copies:
        """Return how many copies fit: in any order if their sums do, as a proposal remains one while there is room."""
        least, is_all = self._filled(tree, details, bound)
        if least == bound or (not least and is_all):
            return exactly(least)
        is_tried = self.every is not None and self._tries.take(COMPOSING_EVERY)
        every = self.every.proposals(tree, details, self.steps) if self.every and is_tried else None
        if every is None or not every.complete or len(every.proposals) >= MAX_WAYS:
            return Copies(least, bound)
        packed = self._packed(every.proposals, details, bound)
        return Copies(max(least, packed.least), max(least, min(bound, packed.max_count)))

    def _filled(self, tree: Tree, details: PlannerTree, bound: int) -> tuple[int, bool]:
        """Return how many copies fit if each takes the best proposal, and whether no proposal is left then."""
        copies, overlay, composer = 0, AS_IT_IS, self.question.composer
        for _time in range(MAX_PLANNED):
            if copies == bound or not self._tries.take():
                break
            changed, inside = under(overlay, composer.plan, tree, details)
            if not all(changed.options) or composer.is_hopeless(changed):
                return copies, True
            proposals = composer.proposals(changed, inside, self.steps)
            if not proposals.proposals:
                return copies, proposals.complete
            proposal = proposals.proposals[0]
            # Only one copy takes the same again if it holds a place.
            room = [inside.stocks[provider][name].free // much for (provider, name), much in _taken(proposal).items()]
            times = 1 if proposal.locks else max(1, min([bound - copies, *room]))
            taken = {
                provider: {name: times * much for name, much in of_class.items()}
                for provider, of_class in proposal.amounts.items()
            }
            overlay = overlay.taking(taken, held=[lock.provider for lock in proposal.locks])
            copies += times
        return copies, False

    def _packed(self, proposals: Sequence[Proposal], details: PlannerTree, bound: int) -> Copies:
        """Pack what proposals take. A place has room for ``bound`` copies, or for a single one that holds it."""
        held, bundles = {lock.provider for proposal in proposals for lock in proposal.locks}, []
        for proposal in proposals:
            inside = {place for provider in proposal.amounts for place in upwards(provider, details.parents)}
            in_places = {(place, _IN_IT): 1 for place in inside & held}
            bundles.append(_taken(proposal) | in_places | {(lock.provider, _IN_IT): bound for lock in proposal.locks})
        number = {cell: index for index, cell in enumerate(sorted({cell for bundle in bundles for cell in bundle}))}
        kinds: dict[str, list[int]] = defaultdict(list)
        for (_provider, name), index in number.items():
            if name != _IN_IT:
                kinds[name].append(index)
        numbered = undominated([{number[cell]: much for cell, much in bundle.items()} for bundle in bundles])
        if not all(numbered):
            return exactly(bound)
        free = [bound if name == _IN_IT else max(0, details.stocks[provider][name].free) for provider, name in number]
        return BundlePacking(numbered, [*kinds.values()]).copies(free, budget=self._packing.child(STEPS_OF_A_TREE))


def _taken(proposal: Proposal) -> dict[_PlaceOrClass, int]:
    amounts = proposal.amounts.items()
    return {(provider, name): much for provider, of_class in amounts for name, much in of_class.items() if much}


def under(overlay: Overlay, plan: Plan, tree: Tree, details: PlannerTree) -> tuple[Tree, PlannerTree]:
    """Return a tree and its details with an overlay applied."""
    if overlay.is_empty:
        return tree, details
    inside = details.under(overlay)
    changed = {provider: inside.stocks[provider] for provider in overlay.changes}
    return with_stocks(tree, plan, changed), inside


def beyond_reach(per_copy: Mapping[str, int], details: PlannerTree, copies: int) -> Overlay:
    """Return an overlay that takes what is free beyond what so many copies can take from each provider.

    That changes no count, but makes trees alike. ``per_copy`` is the most of each class that one copy takes.
    """
    beyond = {
        provider: {
            name: free - copies * per_copy[name]
            for name, stock in stocks.items()
            if name in per_copy and (free := stock.free) > copies * per_copy[name]
        }
        for provider, stocks in details.stocks.items()
    }
    return AS_IT_IS.taking({provider: amounts for provider, amounts in beyond.items() if amounts})
