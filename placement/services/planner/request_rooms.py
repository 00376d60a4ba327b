"""How many more copies of requests fit: the use case behind /planner/v1/headroom, the command and the metrics."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, partial
from types import MappingProxyType
from typing import NamedTuple, TypeGuard

from placement.allocators.budget import Budget
from placement.allocators.bundle_packing import Copies, exactly
from placement.candidates.headroom.counting import CopyCounter
from placement.candidates.headroom.forms import CloudInForms
from placement.candidates.headroom.mix import of_mix
from placement.candidates.headroom.placed import MAX_PLANNED, MAX_WAYS, TreeFilling, beyond_reach, under
from placement.candidates.headroom.totals import (
    CountedRequest,
    Headroom,
    HostModel,
    all_together,
    counted_plan,
    has_rules,
    headroom,
    models,
)
from placement.candidates.planner.planner_search import PlannerSearch
from placement.candidates.planner.planner_trees import host_sketch
from placement.candidates.planner.question import PlannerQuestion
from placement.candidates.serving import SetsInView, withheld
from placement.cloud.columns import cloud_view, with_changes
from placement.cloud.providers import Ints
from placement.domain.overlay import AS_IT_IS, Overlay
from placement.domain.places import PlaceLock
from placement.domain.planner_request import PlannerRequest
from placement.domain.search_plan import CandidateRequest, NamedIds, plan_for
from placement.domain.tree import PlannerTree, Tree
from placement.errors import Invalid, InvalidAt
from placement.services.cloud_cache import cloud_in, ids_in
from placement.services.planner.changes import AS_THEY_ARE, Changes, emptied, overlay_of
from placement.services.planner.questions import Composers, PlannerOptions, question_for, traits_that_decide
from placement.store.connection.unit_of_work import Transaction, reads_anywhere
from placement.store.search.names import Named, named_providers, roots_by_aggregate

MAX_TRIES = 600
"""How often to compose for one request; trees not reached by then get bounds."""

STEPS_OF_PACKING = 200_000

READ_TOGETHER = 500
"""How many trees are read in detail at a time."""


@dataclass
class PlacedCopies:
    """Counts the copies of one request in a snapshot, with assumed changes; ``filling`` counts those in one tree."""

    tx: Transaction
    question: PlannerQuestion
    filling: TreeFilling
    overlay: Overlay
    like: Mapping[int, int]
    kind_of_tree: Ints
    copies_by_form: dict[object, Copies] = field(default_factory=dict)

    @cached_property
    def _from_each(self) -> Mapping[str, int]:
        """How much of each class a copy takes from one provider at most; empty where amounts alone do not decide."""
        request = self.question.request
        open_ended = [group.everything or group.per_subtree or group.device is not None for group in request.groups]
        # An exclusive request depends on whether anything is in use.
        if request.exclusive or request.paths or any(open_ended):
            return {}
        each: Counter[str] = Counter()
        for group in request.groups:
            each.update({name: group.count * amount for name, amount in group.group.resources.items()})
        return each

    @property
    def avoided(self) -> Collection[int]:
        """The roots of trees that the request leaves out."""
        return self.question.avoided

    def together(self, most: int) -> int:
        """Return a lower bound for all trees together if there are sharing providers: plan copies until none fits."""
        if not self.question.has_sharing:
            return 0
        overlay = self.overlay
        for copies in range(min(most, MAX_PLANNED)):
            proposal = next(PlannerSearch(self.question, overlay).proposals(), None)
            if proposal is None:
                return copies
            overlay = overlay.taking(proposal.amounts, held=[lock.provider for lock in proposal.locks])
        return min(most, MAX_PLANNED)

    def kinds(self, trees: Ints) -> Ints:
        """Return the kind of each tree; if there are sharing providers, each tree is a kind of its own."""
        return trees if self.question.has_sharing else self.kind_of_tree[trees]

    def in_trees(self, bounds: Mapping[int, int]) -> dict[int, Copies]:
        """Return how many copies fit into trees, by root.

        ``bounds`` has for each root how many copies its sums allow at most.
        """
        here = {root: most for root, most in bounds.items() if root not in self.like}
        copies = self._counted(self.overlay, here)
        further = {self.like[root]: most for root, most in bounds.items() if root in self.like}
        empty = self.in_empty(further) if further else {}
        return copies | {root: empty[self.like[root]] for root in bounds if root in self.like}

    def in_empty(self, bounds: Mapping[int, int]) -> dict[int, Copies]:
        """Return how many copies would fit into trees like these if they were empty, by root."""
        roots = {root: self.like.get(root, root) for root in bounds}
        overlay = emptied(self.tx, sorted({*roots.values()}), self.overlay)
        copies = self._counted(overlay, {roots[root]: most for root, most in bounds.items()})
        return {root: copies[model] for root, model in roots.items()}

    def _counted(self, overlay: Overlay, bounds: Mapping[int, int]) -> dict[int, Copies]:
        copies = dict.fromkeys(bounds, exactly(0))
        question, reader = self.question, self.question.reader(overlay)
        roots = sorted(bounds)
        for first in range(0, len(roots), READ_TOGETHER):
            trees = reader.trees_of(roots[first : first + READ_TOGETHER])
            for tree, details in zip(trees, question.details.of(trees), strict=True):
                copies[tree.root] = self._in_tree(tree, details.under(overlay), bounds[tree.root])
        return copies

    def _in_tree(self, tree: Tree, details: PlannerTree, most: int) -> Copies:
        """Return how many copies fit into one tree; trees of the same canonical form have the same number."""
        if details.foreign_providers:
            return self.filling.copies(tree, details, most)
        if self._from_each:
            plan = self.filling.plan
            tree, details = under(beyond_reach(self._from_each, details, most), plan, tree, details)
        form = (host_sketch([self.filling.plan], [tree], details).form, most)
        if form not in self.copies_by_form:
            self.copies_by_form[form] = self.filling.copies(tree, details, most)
        return self.copies_by_form[form]


NO_OPTIONS: Mapping[str, PlannerOptions] = MappingProxyType({})


class Listing(NamedTuple):
    """What to list besides the numbers: trees with room, aggregates, and models of trees, up to a limit for each."""

    trees: bool = False
    aggregates: bool = False
    models: bool = True
    limit: int = 10


@dataclass(frozen=True, slots=True)
class RequestRoom:
    """The headroom of one request.

    Args:
        found: the headroom by tree.
        copies: how many copies fit in total.
        trees: the roots of the trees with most room, and how many copies fit there.
        aggregates: the aggregates with most room, and how many copies fit into all their trees.
        models: what one more tree of each model would add.
    """

    found: Headroom
    copies: Copies
    trees: Sequence[tuple[int, Copies]] = ()
    aggregates: Sequence[tuple[str, Copies]] = ()
    models: Sequence[HostModel] = ()


@dataclass(frozen=True, slots=True)
class Headrooms:
    """The headroom of each request by name, that of a mix of them, and the mentioned providers by id."""

    of: Mapping[str, RequestRoom]
    mix: Copies | None = None
    providers: Mapping[int, Named] = field(default_factory=dict)


@reads_anywhere
def headrooms(
    tx: Transaction,
    requests: Mapping[str, CountedRequest],
    listing: Listing = Listing(),  # noqa: B008 - it is frozen
    *,
    mix: Mapping[str, Fraction] | None = None,
    changes: Changes = AS_THEY_ARE,
    options: Mapping[str, PlannerOptions] = NO_OPTIONS,
    locks: Sequence[PlaceLock] = (),
) -> Headrooms:
    """Count how many copies of each request fit, in one snapshot.

    Takes a fixed number of statements, and O(trees) work for each request, in columns; with rules about places, a few
    more statements for each 500 kinds of trees.

    Args:
        tx: the transaction.
        requests: the requests by name.
        listing: what to list besides the numbers.
        mix: the proportions, adding up to 1, in which copies of some requests have to fit together.
        changes: assumed changes to the cloud.
        options: the operator's options for planner requests.
        locks: the locks of places: nothing fits into a place that somebody holds exclusively.

    Raises:
        Invalid: something does not exist; of several requests, it names the one that wants it. InvalidAt in a change.
    """
    asked = {name: _in_groups(request, options.get(name)) for name, request in requests.items()}
    ids, overlay = _ids(tx, asked, locks), overlay_of(tx, changes)
    cloud = _supposed(tx, ids, overlay)
    aggregates = roots_by_aggregate(tx) if listing.aggregates else {}
    by_place = {name: request for name, request in requests.items() if _depends_on_places(request, ids)}
    placed = _placed(tx, by_place, options, cloud=cloud, overlay=overlay)
    counters = {name: CopyCounter(counted_plan(request), cloud) for name, request in asked.items()}
    listed = partial(_counted, listing=listing, aggregates=aggregates)
    counted = {name: listed(counter, placed=placed.get(name)) for name, counter in counters.items()}
    alone = {name: room.found for name, room in counted.items()}
    together = of_mix(mix, counters, alone, ruled=placed) if mix else None
    return Headrooms(counted, together, named_providers(tx, _mentioned(counted.values())))


def _ids(tx: Transaction, asked: Mapping[str, CountedRequest], locks: Sequence[PlaceLock]) -> NamedIds:
    """Return the ids of all names in requests that are looked up together."""
    try:
        return ids_in(tx, plan_for(all_together(asked.values())), locks=locks)
    except Invalid:
        for name, request in asked.items() if len(asked) > 1 else ():
            try:
                ids_in(tx, plan_for(all_together([request])))
            except Invalid as wrong:
                raise InvalidAt(("requests", name), wrong.message) from wrong
        raise


def _depends_on_places(request: CountedRequest, ids: NamedIds) -> TypeGuard[PlannerRequest]:
    """Tell whether sums alone cannot decide how many copies fit into a tree."""
    return isinstance(request, PlannerRequest) and bool(has_rules(request) or ids.locks)


def _placed(
    tx: Transaction,
    requests: Mapping[str, PlannerRequest],
    options: Mapping[str, PlannerOptions],
    *,
    cloud: CloudInForms,
    overlay: Overlay,
) -> dict[str, PlacedCopies]:
    """Return the counters for requests that depend on places; kinds of trees are told once for all of them."""
    if not requests:
        return {}
    deciding = [traits_that_decide(request, options[name].levels_for(request)) for name, request in requests.items()]
    kinds = cloud.kinds(sorted(tx.names.traits.ids(tx.connection, frozenset().union(*deciding)).values()))
    placed = {}
    for name, request in requests.items():
        # Scores do not matter here.
        terms, composers = replace(options[name], judge=None), Composers()
        first = replace(request, limit=1, per_tree=1, explain=False)
        question = question_for(tx, first, terms, composers=composers)
        every = None if request.paths else composers.prepared(replace(first, per_tree=MAX_WAYS), terms).composer
        filling = TreeFilling(
            question.prepared.plan,
            question.prepared.composer,
            every,
            steps=composers.budget,
            packing=Budget(STEPS_OF_PACKING),
            tries=Budget(MAX_TRIES),
        )
        placed[name] = PlacedCopies(tx, question, filling, overlay=overlay, like=cloud.like, kind_of_tree=kinds)
    return placed


def _supposed(tx: Transaction, ids: NamedIds, overlay: Overlay) -> CloudInForms:
    """Return the cloud with its assumed changes, where exclusively held places have nothing free."""
    columns, sets = cloud_in(tx).columns, cloud_in(tx).sets
    sets.read_traits(ids.traits.values())
    sets.read_aggregates(ids.aggregates.values())
    sets.read_traits([trait_id for trait_id in ids.locks.values() if trait_id is not None])
    changed = with_changes(columns, overlay, tx.names.classes.ids(tx.connection, overlay.classes))
    full = withheld(changed, sets, ids.locks) if ids.locks else None
    view = cloud_view(changed, overlay, full=full)
    return CloudInForms(view.columns, SetsInView(sets, view, columns.providers), ids, view.like)


def _mentioned(rooms: Collection[RequestRoom]) -> set[int]:
    """Return the existing providers that an answer mentions."""
    mentioned = {provider for room in rooms for provider, _copies in room.trees}
    mentioned |= {model.like for room in rooms for model in room.models}
    return {provider for provider in mentioned if provider > 0}


class HeadroomInCloud(NamedTuple):
    """The headroom of one request, and the cloud it was counted in."""

    found: Headroom
    cloud: CloudInForms


def headroom_in(tx: Transaction, request: CandidateRequest, *, locks: Sequence[PlaceLock] = ()) -> HeadroomInCloud:
    """Count how many copies of one request fit, within the caller's transaction; see ``headrooms``."""
    plan = counted_plan(request)
    cloud = _supposed(tx, ids_in(tx, plan, locks=locks), AS_IT_IS)
    return HeadroomInCloud(headroom(CopyCounter(plan, cloud)), cloud)


def _in_groups(request: CountedRequest, options: PlannerOptions | None) -> CountedRequest:
    """Relax a request so that at least as many copies fit: each part of a hierarchical name becomes a group."""
    if not isinstance(request, PlannerRequest) or not request.paths or options is None:
        return request
    return Composers().prepared(request, options).parts or request


def _counted(
    counter: CopyCounter,
    *,
    listing: Listing,
    placed: PlacedCopies | None,
    aggregates: Mapping[str, frozenset[int]],
) -> RequestRoom:
    found = headroom(counter, placed)
    if placed is not None and not found.copies.is_exact:
        least, most = found.copies
        found = replace(found, copies=Copies(max(least, placed.together(most)), most))
    by_room = sorted(found.trees().items(), key=lambda room: (-room[1].least, room[0])) if listing.trees else []
    return RequestRoom(
        found,
        found.copies,
        trees=by_room[: listing.limit],
        aggregates=_by_aggregate(found, counter.cloud, aggregates)[: listing.limit],
        models=models(counter, found.counted, placed)[: listing.limit] if listing.models else (),
    )


def _by_aggregate(
    found: Headroom, cloud: CloudInForms, aggregates: Mapping[str, frozenset[int]]
) -> list[tuple[str, Copies]]:
    roots = {root for of_form in found.counted for root in of_form.trees.roots.tolist()} if aggregates else ()
    numbers = []
    for uuid, inside in aggregates.items():
        # A tree that does not exist is in the aggregates of the tree that it is modelled on.
        if trees := {root for root in roots if cloud.like.get(root, root) in inside}:
            numbers.append((uuid, found.among(trees)))
    return sorted(numbers, key=lambda room: (-room[1].least, room[0]))
