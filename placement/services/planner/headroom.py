"""How many more copies of requests fit: the use case behind /planner/v1/headroom, the command and the metrics."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from types import MappingProxyType
from typing import NamedTuple, TypeGuard

from placement.allocators.headroom import Copies
from placement.candidates.headroom.counting import in_all_trees
from placement.candidates.headroom.fleets import Fleets, fleets_of
from placement.candidates.headroom.headroom import Headroom, HostModel, headroom, models
from placement.candidates.headroom.mix import of_mix
from placement.candidates.headroom.plans import CountedRequest, all_together, counted_plan, has_rules
from placement.candidates.headroom.what_if import as_it_would_be, without_room
from placement.domain.candidate_request import CandidateRequest
from placement.domain.overlay import AS_IT_IS, Overlay
from placement.domain.place_lock import PlaceLock
from placement.domain.planner_request import PlannerRequest
from placement.domain.search_plan import NamedIds, Plan, plan_for
from placement.domain.whole_cloud import WholeCloud
from placement.errors import Invalid, InvalidAt
from placement.services.planner.changes import AS_THEY_ARE, Changes, more_trees, overlay_of
from placement.services.planner.composers import Composers, PlannerOptions
from placement.services.planner.placed_copies import PlacedCopies, placed_copies
from placement.services.planner.tree_kinds import TreeKinds
from placement.store.connection.unit_of_work import Transaction, reads_anywhere
from placement.store.locks import withheld_providers
from placement.store.search.facts import Named, named_providers
from placement.store.search.names import ids_for
from placement.store.search.whole_cloud import whole_cloud

__all__ = ["Changes", "Copies", "Headrooms", "HostModel", "Listing", "Named", "RequestRoom", "headroom_in", "headrooms"]

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

    Takes a fixed number of statements, and O(trees) work for each request; with rules about places, a few more for each
    2,000 trees, to find the kinds of trees, and a few for each 500 kinds.

    Args:
        tx: the transaction.
        requests: the requests by name.
        listing: what to list besides the numbers.
        mix: the proportions, adding up to 1, in which copies of some requests have to fit together.
        changes: assumed changes to the cloud.
        options: the operator's options for planner requests.
        locks: the locks of places: nothing fits into a place that somebody holds exclusively.

    Raises:
        Invalid: a resource class or trait does not exist; of several requests, it names the one that wants it.
        InvalidAt: a change names something that does not exist.
    """
    asked = {name: _in_groups(request, options.get(name)) for name, request in requests.items()}
    ids = _ids(tx, asked, locks)
    overlay = overlay_of(tx, changes)
    fleets = _supposed(tx, ids, changes, overlay=overlay, with_aggregates=listing.aggregates)
    by_place = {name: one for name, one in requests.items() if _depends_on_places(one, ids)}
    placed = _placed(tx, by_place, options, fleets=fleets, overlay=overlay)
    plans = {name: counted_plan(request) for name, request in asked.items()}
    counted = {name: _counted(plan, fleets, listing, placed.get(name)) for name, plan in plans.items()}
    found = {name: one.found for name, one in counted.items()}
    together = of_mix(mix, plans, found, fleets, ruled=placed) if mix else None
    return Headrooms(counted, together, named_providers(tx, _mentioned(counted.values())))


def _ids(tx: Transaction, asked: Mapping[str, CountedRequest], locks: Sequence[PlaceLock]) -> NamedIds:
    """Return the ids of all names in requests that are looked up together."""
    try:
        return ids_for(tx, plan_for(all_together(asked.values())), locks=locks)
    except Invalid:
        for name, request in asked.items() if len(asked) > 1 else ():
            try:
                ids_for(tx, plan_for(all_together([request])))
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
    fleets: Fleets,
    overlay: Overlay,
) -> dict[str, PlacedCopies]:
    """Return the counters for requests that depend on places; kinds of trees are told once for all of them."""
    like, kinds = fleets.cloud.like, TreeKinds(tx, overlay, fleets)
    return {
        name: placed_copies(tx, request, options[name], overlay=overlay, like=like, kinds=kinds)
        for name, request in requests.items()
    }


def _supposed(tx: Transaction, ids: NamedIds, changes: Changes, *, overlay: Overlay, with_aggregates: bool) -> Fleets:
    """Return the cloud with its assumed changes, where exclusively held places have nothing free."""
    cloud = whole_cloud(tx, ids, with_aggregates=with_aggregates)
    return fleets_of(_without_held(tx, as_it_would_be(cloud, overlay, more_trees(tx, changes)), ids, overlay))


def _without_held(tx: Transaction, cloud: WholeCloud, ids: NamedIds, overlay: Overlay = AS_IT_IS) -> WholeCloud:
    """Return a cloud where exclusively held places have nothing free. Hypothetical trees have negative ids."""
    withheld = withheld_providers(tx, ids.locks, overlay=overlay) if ids.locks else None
    return without_room(cloud, withheld) if withheld else cloud


def _mentioned(rooms: Collection[RequestRoom]) -> set[int]:
    """Return the existing providers that an answer mentions."""
    mentioned = {provider for room in rooms for provider, _copies in room.trees}
    mentioned |= {model.like for room in rooms for model in room.models}
    return {provider for provider in mentioned if provider > 0}


def headroom_in(tx: Transaction, request: CandidateRequest, *, locks: Sequence[PlaceLock] = ()) -> Headroom:
    """Count how many copies of one request fit, within the caller's transaction; see ``headrooms``."""
    plan = counted_plan(request)
    ids = ids_for(tx, plan, locks=locks)
    return headroom(plan, fleets_of(_without_held(tx, whole_cloud(tx, ids), ids)))


def _in_groups(request: CountedRequest, options: PlannerOptions | None) -> CountedRequest:
    """Relax a request so that at least as many copies fit: each part of a hierarchical name becomes a group."""
    if not isinstance(request, PlannerRequest) or not request.paths or options is None:
        return request
    return Composers().prepared(request, options).parts or request


def _counted(plan: Plan, fleets: Fleets, listing: Listing, placed: PlacedCopies | None) -> RequestRoom:
    found = headroom(plan, fleets, placed)
    if placed is not None and not found.copies.is_exact:
        least, most = found.copies
        found = replace(found, copies=Copies(max(least, placed.together(most)), most))
    by_room = sorted(found.trees().items(), key=lambda one: (-one[1].least, one[0])) if listing.trees else []
    return RequestRoom(
        found,
        found.copies,
        trees=by_room[: listing.limit],
        aggregates=_by_aggregate(found, fleets.cloud)[: listing.limit] if listing.aggregates else (),
        models=models(plan, fleets, found, placed)[: listing.limit] if listing.models else (),
    )


def _by_aggregate(found: Headroom, cloud: WholeCloud) -> list[tuple[str, Copies]]:
    roots = {root for one in found.counted for root in one.fleet.trees}
    numbers = [
        (uuid, in_all_trees(found.counted, among=members & roots))
        for uuid, members in cloud.aggregates.items()
        if not members.isdisjoint(roots)
    ]
    return sorted(numbers, key=lambda one: (-one[1].least, one[0]))
