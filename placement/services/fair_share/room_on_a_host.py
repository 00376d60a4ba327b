"""Find the consumers on one host that should give back what they hold so that a request fits there.

Fairness is as in ``giving_back``; ``room_search`` finds the host.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from placement.allocators.fair_share import Giving
from placement.allocators.fair_share.reclaim import is_fair_to_take
from placement.allocators.fair_share.tenants import all_freed, dearness
from placement.candidates.planner.planner_search import PlannedCandidate, search_for
from placement.domain.overlay import AS_IT_IS, Overlay
from placement.domain.planner_tree import NamedMember
from placement.services.fair_share.emptied_trees import EmptiedTrees, RoomWanted
from placement.services.fair_share.giving_back import (
    Reclaim,
    ReclaimOptions,
    ReclaimSituation,
    reclaim_of,
    reclaim_situation,
)
from placement.services.fair_share.room_search import HostRights, RoomSearch
from placement.services.fair_share.shares import Wish
from placement.services.fair_share.tenants_by_host import WhatMatters, tenants_by_host
from placement.services.planner.questions import Composers, question_for
from placement.settings.planner.values import FairShareSettings
from placement.store.connection.database import Database
from placement.store.connection.unit_of_work import Transaction, reads


@dataclass(frozen=True, slots=True)
class RoomOnHost:
    """Who gives back, and what that makes room for.

    Args:
        giving: who gives back; ``feasible`` is False if those who may be asked have too little on every host.
        members: the names of leaves by path.
        host: the uuid of the root of the tree whose consumers give; None if nobody has to.
        candidate: the candidate that would then rank first; None if nothing fits.
        providers: the providers that it takes from, and others.
    """

    giving: Giving
    members: Mapping[str, str]
    host: str | None = None
    candidate: PlannedCandidate | None = None
    providers: Mapping[int, NamedMember] = field(default_factory=dict)


def room_for(
    database: Database,
    settings: FairShareSettings,
    wanted: RoomWanted,
    *,
    member: str,
    wishes: Sequence[Wish],
    options: ReclaimOptions,
) -> RoomOnHost:
    """Return the consumers on one host that should give back what they hold. Bypasses the usage cache.

    Args:
        database: the database.
        settings: the rules of sharing.
        wanted: the request.
        member: the claimant.
        wishes: what others wait for.
        options: who may be asked, and how they compare.

    Raises:
        InvalidAt: the request names something that does not exist, or takes nothing that counts.
    """
    wanted = replace(wanted, request=replace(wanted.request, limit=1, per_tree=1, explain=False))
    requested = Composers().prepared(wanted.request, wanted.options).composer.requested
    claim = reclaim_of(database, settings, Wish(member, requested, where=("request",)), wishes)
    return _room(database, settings, claim, wanted=wanted, options=options)


@reads
def _room(
    tx: Transaction,
    settings: FairShareSettings,
    claim: Reclaim,
    *,
    wanted: RoomWanted,
    options: ReclaimOptions,
) -> RoomOnHost:
    situation = reclaim_situation(tx, settings, claim)
    by_host = HostRights(situation, claim)
    rights = by_host.anywhere
    if all(path == rights.root for path, _name in rights.needs):
        as_it_is = _first(tx, wanted, AS_IT_IS)
        if as_it_is is not None:
            return _shown(Giving(feasible=True), situation, as_it_is)
    trees = EmptiedTrees(tx, wanted)
    places = trees.places()
    classes = {*claim.task, *trees.requested}
    tenants = tenants_by_host(tx, settings, WhatMatters(claim.task.keys(), classes, places.anchors, options))
    search = RoomSearch(trees, places, by_host, tenants)
    room = search.fewest() if options.priority is None else search.least_important(options.priority)
    given_back = tuple(sorted([tenant.held for tenant in room.tenants], key=dearness))
    giving = Giving(room.feasible, given_back, rights.lacking, search.complete)
    is_fair = options.priority is not None or is_fair_to_take(situation.shares, rights, given_back)
    if not (room.feasible and is_fair):
        partings = rights.partings(tenants.leaves())
        return RoomOnHost(replace(giving, feasible=False, given_back=(), partings=partings), situation.members)
    planned = _first(tx, wanted, AS_IT_IS.releasing(all_freed(room.tenants)))
    giving = replace(giving, partings=rights.partings([held.leaf for held in given_back]))
    return _shown(giving, situation, planned, room.root)


@dataclass(frozen=True, slots=True)
class _PlannedRoom:
    candidate: PlannedCandidate
    providers: Mapping[int, NamedMember]


def _first(tx: Transaction, wanted: RoomWanted, overlay: Overlay) -> _PlannedRoom | None:
    """Return the candidate that ranks first."""
    question = question_for(tx, wanted.request, wanted.options)
    search = search_for(question, overlay)
    proposal = next(search.proposals(), None)
    if proposal is None:
        return None
    return _PlannedRoom(PlannedCandidate(proposal, search.score(proposal)), search.members)


def _shown(
    giving: Giving, situation: ReclaimSituation, planned: _PlannedRoom | None, root: int | None = None
) -> RoomOnHost:
    if planned is None:
        return RoomOnHost(giving, situation.members)
    host = None if root is None else planned.providers[root].uuid
    return RoomOnHost(giving, situation.members, host, planned.candidate, planned.providers)
