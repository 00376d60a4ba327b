"""How many more copies of requests fit: the use case behind /planner/v1/headroom, the command and the metrics."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

from placement.allocators.bundle_packing import Copies
from placement.candidates.headroom.counting import CopyCounter
from placement.candidates.headroom.forms import CloudInForms
from placement.candidates.headroom.mix import of_mix
from placement.candidates.headroom.placed import MAX_WAYS, PlacedCopies
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
from placement.candidates.serving import SetsInView, withheld
from placement.cloud.columns import cloud_view, with_changes
from placement.domain.planner_request import PlannerRequest
from placement.domain.search_plan import CandidateRequest, NamedIds, plan_for
from placement.domain.tree import AS_IT_IS, Overlay, PlaceLock
from placement.errors import Invalid, InvalidAt
from placement.services.cloud_cache import cloud_in, ids_in
from placement.services.planner.questions import (
    Changes,
    Composers,
    PlannerOptions,
    composer_of_paths,
    emptied,
    overlay_of,
    question_for,
    traits_that_decide,
)
from placement.store.connection.database import Transaction, reads_anywhere
from placement.store.marks import hosts_in
from placement.store.search.names import Named, named_providers

NO_OPTIONS: Mapping[str, PlannerOptions] = MappingProxyType({})


class Listing(NamedTuple):
    """What to list besides the numbers: trees with room, aggregates, and models of trees, up to a limit for each."""

    trees: bool = False
    aggregates: bool = False
    models: bool = True
    limit: int = 10


@dataclass(frozen=True, slots=True)
class RequestRoom:
    """The headroom of one request by tree and in total, and the trees, aggregates and models with most room."""

    headroom: Headroom
    trees: Sequence[tuple[int, Copies]] = ()
    aggregates: Sequence[tuple[str, Copies]] = ()
    models: Sequence[HostModel] = ()


@dataclass(frozen=True, slots=True)
class Headrooms:
    """The headroom of each request by name, that of a mix of them, and the mentioned providers by id."""

    rooms: Mapping[str, RequestRoom]
    mix: Copies | None = None
    providers: Mapping[int, Named] = field(default_factory=dict)


@reads_anywhere
def headrooms(
    tx: Transaction,
    requests: Mapping[str, CountedRequest],
    listing: Listing = Listing(),  # noqa: B008 - it is frozen
    *,
    mix: Mapping[str, Fraction] | None = None,
    changes: Changes | None = None,
    options: Mapping[str, PlannerOptions] = NO_OPTIONS,
    locks: Sequence[PlaceLock] = (),
) -> Headrooms:
    """Count how many copies of each request fit, in one snapshot.

    Takes a fixed number of statements, and O(trees) work for each request, in columns; with rules about places, a few
    more statements for each 500 kinds of trees. ``mix`` has the proportions, adding up to 1, in which copies of some
    have to fit together. Invalid for what does not exist, at the request that wants it; InvalidAt in a change.
    """
    in_groups = dict(requests)
    for name, request in requests.items():
        # Relaxed so that at least as many copies fit: each part of a hierarchical name becomes a group.
        if isinstance(request, PlannerRequest) and request.paths and name in options:
            in_groups[name] = composer_of_paths(request, options[name]).parts()
    ids, overlay = _ids(tx, in_groups, locks), overlay_of(tx, changes) if changes else AS_IT_IS
    cloud = _supposed(tx, ids, overlay)
    aggregates = {uuid: frozenset(roots) for uuid, roots in hosts_in(tx).items()} if listing.aggregates else {}
    # Of these, sums alone cannot decide how many copies fit into a tree.
    by_place = {
        name: request
        for name, request in requests.items()
        if isinstance(request, PlannerRequest) and (has_rules(request) or ids.locks)
    }
    placed = _placed(tx, by_place, options, cloud=cloud, overlay=overlay)
    counters = {name: CopyCounter(counted_plan(request), cloud) for name, request in in_groups.items()}
    listed = partial(_counted, listing=listing, aggregates=aggregates)
    counted = {name: listed(counter, placed=placed.get(name)) for name, counter in counters.items()}
    alone = {name: room.headroom for name, room in counted.items()}
    together = of_mix(mix, counters, alone, ruled=placed) if mix else None
    listed_trees = {provider for room in counted.values() for provider, _copies in room.trees}
    models_named = {model.like for room in counted.values() for model in room.models}
    existing = {provider for provider in listed_trees | models_named if provider > 0}
    return Headrooms(counted, together, named_providers(tx, existing))


def _ids(tx: Transaction, requests: Mapping[str, CountedRequest], locks: Sequence[PlaceLock]) -> NamedIds:
    try:
        return ids_in(tx, plan_for(all_together(requests.values())), locks=locks)
    except Invalid:
        for name, request in requests.items() if len(requests) > 1 else ():
            try:
                ids_in(tx, plan_for(all_together([request])))
            except Invalid as wrong:
                raise InvalidAt(("requests", name), wrong.message) from wrong
        raise


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
        every = None if request.paths else composers.composer(replace(first, per_tree=MAX_WAYS), terms)
        placed[name] = PlacedCopies(
            question,
            every,
            composers.budget,
            overlay=overlay,
            emptied=partial(emptied, tx, overlay=overlay),
            like=cloud.like,
            kind_of_tree=kinds,
        )
    return placed


def _supposed(tx: Transaction, ids: NamedIds, overlay: Overlay) -> CloudInForms:
    """Return the cloud with its assumed changes, where exclusively held places have nothing free."""
    columns, sets = cloud_in(tx).columns, cloud_in(tx).sets
    places = [trait_id for trait_id in ids.locks.values() if trait_id is not None]
    sets.read(traits=[*ids.traits.values(), *places], aggregates=ids.aggregates.values())
    changed = with_changes(columns, overlay, tx.names.classes.ids(tx.connection, overlay.classes))
    full = withheld(changed, sets, ids.locks) if ids.locks else None
    view = cloud_view(changed, overlay, full=full)
    return CloudInForms(view.columns, SetsInView(sets, view, columns.providers), ids, view.like)


def headroom_in(
    tx: Transaction, request: CandidateRequest, *, locks: Sequence[PlaceLock] = ()
) -> tuple[Headroom, CloudInForms]:
    """Count how many copies of one request fit, and return the cloud it was counted in; see ``headrooms``."""
    plan = counted_plan(request)
    cloud = _supposed(tx, ids_in(tx, plan, locks=locks), AS_IT_IS)
    return headroom(CopyCounter(plan, cloud)), cloud


def _counted(
    counter: CopyCounter, *, listing: Listing, placed: PlacedCopies | None, aggregates: Mapping[str, frozenset[int]]
) -> RequestRoom:
    counted = headroom(counter, placed)
    by_room = sorted(counted.trees().items(), key=lambda room: (-room[1].least, room[0])) if listing.trees else []
    return RequestRoom(
        counted,
        trees=by_room[: listing.limit],
        aggregates=_by_aggregate(counted, counter.cloud, aggregates)[: listing.limit],
        models=models(counter, counted.counted, placed)[: listing.limit] if listing.models else (),
    )


def _by_aggregate(
    counted: Headroom, cloud: CloudInForms, aggregates: Mapping[str, frozenset[int]]
) -> list[tuple[str, Copies]]:
    roots = {root for of_form in counted.counted for root in of_form.trees.roots.tolist()} if aggregates else ()
    numbers = []
    for uuid, inside in aggregates.items():
        # A tree that does not exist is in the aggregates of the tree that it is modelled on.
        if trees := {root for root in roots if cloud.like.get(root, root) in inside}:
            numbers.append((uuid, counted.among(trees)))
    return sorted(numbers, key=lambda room: (-room[1].least, room[0]))
