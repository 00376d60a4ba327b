"""Places for members in one snapshot: for all of a gang or for none. Locks and writes nothing.

First each member, the largest first, takes the best that is left. That is fast and mostly enough. If a member finds
nothing, a backtracking search places all of them again: a member in the way of another moves on to its next best place,
in the same tree or another. What members take is an overlay, so backtracking costs nothing.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import NamedTuple

from placement.allocators import Budget
from placement.candidates.compose.proposals import Proposal
from placement.candidates.planner.member_places import MemberPlaces
from placement.candidates.planner.planner_search import PlannerSearch
from placement.candidates.planner.question import PlannerQuestion, Prepared
from placement.domain.allocation import Claim
from placement.domain.overlay import Overlay
from placement.domain.planner_request import FabricLevel, PlannerRequest
from placement.services.planner.questions import Composers, PlannerOptions, question_for
from placement.store.connection.database import Transaction


@dataclass(frozen=True, slots=True)
class ClaimMember:
    """A consumer to be allocated for.

    Args:
        consumer: the consumer and its owner; its allocations are not known yet.
        request: what it wants.
        options: the operator's options for the request.
        replaces: whether it gives up its current allocations in the same transaction.
        explains: whether to find out why, if it has no place even alone.
    """

    consumer: Claim
    request: PlannerRequest
    options: PlannerOptions
    replaces: bool = False
    explains: bool = True

    @property
    def uuid(self) -> str:
        """The uuid of the consumer."""
        return self.consumer.consumer_uuid


@dataclass(frozen=True, slots=True)
class Draft:
    """What one member would hold.

    Args:
        member: the member.
        proposal: the proposal, by ids.
        consumer: the consumer with its allocations.
        mappings: the providers that serve each group.
        alone: the providers that nobody else may use.
        roots: the roots of the trees that it takes from.
    """

    member: ClaimMember
    proposal: Proposal
    consumer: Claim
    mappings: Mapping[str, tuple[str, ...]]
    alone: frozenset[str]
    roots: frozenset[int]

    def upon(self, overlay: Overlay) -> Overlay:
        """Return an overlay with this draft on top."""
        return overlay.taking(self.proposal.amounts, held=[lock.provider for lock in self.proposal.locks])


MAX_CHOICES = 16
"""The most places to choose among after lost races."""


def choices_after(doubt: int) -> int:
    """Return how many of the best places to choose among: twice as many for each lost race."""
    return min(1 << doubt, MAX_CHOICES)


class Drafting:
    """The places of members in one snapshot; what equal members want is read once for all of them.

    Args:
        overlay: assumed changes before any member is placed.
        among: choose at random among this many of the best places, so that a claim does not keep losing to the same
            competitors.
        checks_units: whether to drop places whose inventories disallow the sum of what is taken. Such places are rare,
            and the write would detect them.
    """

    def __init__(
        self, tx: Transaction, composers: Composers, overlay: Overlay, *, among: int = 1, checks_units: bool = True
    ) -> None:
        self.tx = tx
        self.composers = composers
        self.overlay = overlay
        self._among = among
        self._checks_units = checks_units
        self._questions: dict[Prepared, PlannerQuestion] = {}

    def prepared(self, member: ClaimMember) -> Prepared:
        """Return what a member wants: the same object for all members that want the same."""
        return self.composers.prepared(member.request, member.options)

    def search(self, member: ClaimMember, overlay: Overlay, *, places: int = 1) -> PlannerSearch:
        """Return the search of a member under an overlay, for one or several places of each tree."""
        if places == 1:
            return PlannerSearch(self.question(member), overlay)
        request = replace(member.request, per_tree=places)
        prepared = self.composers.prepared(request, member.options)
        if prepared not in self._questions:
            self._questions[prepared] = self.question(member).for_places(request, prepared)
        return PlannerSearch(self._questions[prepared], overlay)

    def question(self, member: ClaimMember) -> PlannerQuestion:
        """Return what is known of the snapshot for all members that want the same."""
        prepared = self.prepared(member)
        if prepared not in self._questions:
            self._questions[prepared] = question_for(self.tx, member.request, member.options, composers=self.composers)
        return self._questions[prepared]

    def places_of(self, member: ClaimMember, overlay: Overlay, *, members: int, isolate: bool = False) -> MemberPlaces:
        """Return the places for a number of members that want the same; with ``isolate`` each takes another tree."""
        question = self.question(member)
        return MemberPlaces(question, overlay, members=members, isolate=isolate, checks_units=self._checks_units)

    def best(self, member: ClaimMember, places: MemberPlaces, overlay: Overlay) -> Draft | None:
        """Return the best place for a member, or one of the best; None if there is none."""
        proposals = places.best(overlay, number=self._among)
        if not proposals:
            return None
        return draft_of(member, random.choice(proposals), places.search)  # noqa: S311 - spreads load, keeps no secret

    def drafts(self, member: ClaimMember, proposals: Sequence[Proposal], search: PlannerSearch) -> Iterator[Draft]:
        """Yield the proposals that inventories allow, as drafts."""
        for proposal in proposals:
            if not self._checks_units or search.allows(proposal):
                yield draft_of(member, proposal, search)


def draft_of(member: ClaimMember, proposal: Proposal, search: PlannerSearch) -> Draft:
    """Turn a proposal into a draft for a member."""
    members = search.members
    allocations = {members[provider].uuid: amounts for provider, amounts in proposal.amounts.items()}
    mappings = {
        suffix: tuple(members[provider].uuid for provider in providers)
        for suffix, providers in proposal.mappings.items()
    }
    alone = search.inside([lock.provider for lock in proposal.locks])
    consumer = replace(member.consumer, allocations=allocations)
    return Draft(member, proposal, consumer, mappings, alone, search.roots_of(proposal))


PLACES_OF_A_TREE = 16
"""The most places in a tree to try for a member."""

PLACES_OF_A_GANG = 100
"""The most places to try in all."""

STEPS_FOR_A_GROUP = 300
"""The steps charged for each group when a tree yields nothing: reading it and the like, besides the search."""


@dataclass(frozen=True, slots=True)
class GangPlan:
    """The places of members, in the order in which they were placed.

    Args:
        drafts: one for each member, or for each before the stuck one.
        stuck: the member that found nothing, None if all have places.
        complete: whether everything was tried.
        is_proven: whether the stuck one definitely has no place wherever the others are.
    """

    drafts: Sequence[Draft] = ()
    stuck: ClaimMember | None = None
    complete: bool = True
    is_proven: bool = False


def by_difficulty(members: Sequence[ClaimMember]) -> list[ClaimMember]:
    """Return members in the order of placement, largest first: those must find room before it is fragmented."""
    return sorted(members, key=_difficulty, reverse=True)


def _difficulty(member: ClaimMember) -> tuple[int, int]:
    request = member.request
    amount = sum(request.requested.values()) + sum(request.paths.values())
    rules = [rule.required for rule in request.affinity] + [rule.required for rule in request.within]
    return amount, sum(rules) + len(request.exclusive)


class Located(NamedTuple):
    """A level of the fabric, with the place of each host."""

    level: FabricLevel
    names: Mapping[int, str]

    def place(self, root: int) -> Hashable:
        """Return the place of a host, None if it is in none."""
        return root if self.level.is_host else self.names.get(root)


class OnePerPlace:
    """Closes a place once it has a member of the gang. Hosts outside all places are never open."""

    def __init__(self, located: Located) -> None:
        self._located = located
        self._hosts: dict[Hashable, list[int]] = defaultdict(list)
        for root, name in located.names.items():
            self._hosts[name].append(root)

    def is_open(self, root: int) -> bool:
        """Tell whether a host may be used at all."""
        return self._located.place(root) is not None

    def closed_with(self, root: int) -> Sequence[int]:
        """Return the hosts that a member on a host closes, including that host."""
        return [root] if self._located.level.is_host else self._hosts[self._located.names[root]]


def one_by_one(drafting: Drafting, members: Sequence[ClaimMember], *, closing: OnePerPlace | None = None) -> GangPlan:
    """Give each member in turn the best place that is left."""
    placing = Placing(drafting, members, closing)
    for member in members:
        if not placing.has_placed(member):
            complete, is_proven = placing.places_of(member).complete, placing.are_too_many
            return GangPlan(placing.drafts, member, complete=complete, is_proven=is_proven)
    return GangPlan(placing.drafts)


def as_many_as_fit(
    drafting: Drafting, members: Sequence[ClaimMember]
) -> tuple[Sequence[Draft], Sequence[tuple[GangPlan, Sequence[ClaimMember]]]]:
    """Give each member in turn the best place that is left, if there is any.

    Once a member has found nothing, others that want the same are not tried: they would find no more.

    Returns:
        The drafts; then, for each kind of member without a place, how far the first of them got, and all of them.
    """
    placing = Placing(drafting, members)
    stuck: dict[Prepared, tuple[GangPlan, list[ClaimMember]]] = {}
    for member in members:
        kind = drafting.prepared(member)
        if kind in stuck:
            stuck[kind][1].append(member)
        elif not placing.has_placed(member):
            stuck[kind] = GangPlan([*placing.drafts], member, placing.places_of(member).complete), [member]
    return placing.drafts, list(stuck.values())


class Placing:
    """Places members one after the other. Each is allotted an equal part of the remaining steps."""

    def __init__(self, drafting: Drafting, members: Sequence[ClaimMember], closing: OnePerPlace | None = None) -> None:
        self.drafts: list[Draft] = []
        self._drafting = drafting
        self._closing = closing
        self._closed = set[int]()
        self._overlay = drafting.overlay
        self._waiting = len(members)
        self._kinds = Counter(map(drafting.prepared, members))
        self._places = dict[Prepared, MemberPlaces]()

    def places_of(self, member: ClaimMember) -> MemberPlaces:
        """Return the places for a member."""
        kind = self._drafting.prepared(member)
        if kind not in self._places:
            self._places[kind] = self._drafting.places_of(
                member, self._overlay, members=self._kinds[kind], isolate=self._closing is not None
            )
            self._places[kind].leave_out(self._closed)
        return self._places[kind]

    @property
    def are_too_many(self) -> bool:
        """Whether a member that found nothing has no place wherever the others are, as far as is easily told."""
        members = self._kinds.total()
        return len(self._kinds) == 1 and all(places.max_members(members) < members for places in self._places.values())

    def has_placed(self, member: ClaimMember) -> bool:
        """Place a member, if there is a place; tell whether there was."""
        self._drafting.composers.allot(among=self._waiting)
        self._waiting -= 1
        draft = self._open_best(member)
        if draft is None:
            return False
        self.drafts.append(draft)
        self._overlay = draft.upon(self._overlay)
        for places in self._places.values():
            places.note(draft.roots)
        if self._closing is not None:
            self._close(self._closing.closed_with(draft.proposal.root))
        return True

    def _open_best(self, member: ClaimMember) -> Draft | None:
        """Return the best place of a member on an open host."""
        while draft := self._drafting.best(member, self.places_of(member), self._overlay):
            if self._closing is None or self._closing.is_open(draft.proposal.root):
                return draft
            self._close([draft.proposal.root])
        return None

    def _close(self, roots: Collection[int]) -> None:
        self._closed.update(roots)
        for places in self._places.values():
            places.leave_out(roots)


def together(drafting: Drafting, members: Sequence[ClaimMember]) -> GangPlan:
    """Place all members, backtracking where needed."""
    roots = dict[Prepared, Sequence[int]]()
    for member in members:  # Before anybody is placed: later none of these trees has more room.
        if (prepared := drafting.prepared(member)) not in roots:
            roots[prepared] = list(drafting.search(member, drafting.overlay).roots())
    search = GangSearch(drafting, roots, Budget(PLACES_OF_A_GANG))
    drafts = search.placed(members, drafting.overlay)
    return GangPlan(stuck=members[0], complete=search.is_complete) if drafts is None else GangPlan(drafts)


class _ExhaustedTree(NamedTuple):
    """A tree that is exhausted for members that want the same.

    Either it has no room, or the other members were stuck wherever one of these was placed in it. Members that want the
    same are interchangeable, so no other one of them needs to go there.
    """

    prepared: Prepared
    root: int


class GangSearch:
    """A depth-first search through the places of members.

    Args:
        roots: the trees where each kind of member may fit, most promising first.
        tries: how many places to try.
    """

    def __init__(self, drafting: Drafting, roots: Mapping[Prepared, Sequence[int]], tries: Budget) -> None:
        self._drafting = drafting
        self._roots = roots
        self._tries = tries
        self.is_complete = True
        """Whether there is definitely no other way than those tried."""

    def placed(
        self, members: Sequence[ClaimMember], overlay: Overlay, exhausted: tuple[_ExhaustedTree, ...] = ()
    ) -> list[Draft] | None:
        """Return places for members under an overlay; None if there are none, or too many were tried."""
        if not members:
            return []
        member, members_after = members[0], members[1:]
        self._drafting.composers.allot(among=len(members))
        search, kind = self._drafting.search(member, overlay), self._drafting.prepared(member)
        without = {tree.root for tree in exhausted if tree.prepared is kind}
        tried: list[int] = []
        for root in [root for root in self._roots[kind] if root not in without]:
            for draft in self._inside(root, member, overlay, search):
                if not self._tries.take():
                    self.is_complete = False
                    return None
                done = [_ExhaustedTree(kind, tree) for tree in (*tried, *search.exhausted) if tree != root]
                drafts = self.placed(members_after, draft.upon(overlay), (*exhausted, *done))
                if drafts is not None:
                    return [draft, *drafts]
                if self._tries.was_hit:
                    return None
            tried.append(root)
            budget = self._drafting.composers.budget
            budget.take(STEPS_FOR_A_GROUP * len(search.prepared.plan.slots))
            if budget.is_used_up:
                self.is_complete = False
                break
        self.is_complete = self.is_complete and search.complete and all(search.exhausted.values())
        return None

    def _inside(self, root: int, member: ClaimMember, overlay: Overlay, search: PlannerSearch) -> Iterator[Draft]:
        """Yield the places in a tree, up to the limit; the best one costs a fraction of what all of them do."""
        best = [*islice(search.proposals(only=root), 1)]
        yield from self._drafting.drafts(member, best, search)
        if best:
            # One more than are tried, which shows whether any were left out.
            further = self._drafting.search(member, overlay, places=PLACES_OF_A_TREE + 1)
            proposals = [*islice(further.proposals(only=root), PLACES_OF_A_TREE + 1)]
            self.is_complete = self.is_complete and len(proposals) <= PLACES_OF_A_TREE and further.complete
            proposals_after = [proposal for proposal in proposals[:PLACES_OF_A_TREE] if proposal != best[0]]
            yield from self._drafting.drafts(member, proposals_after, further)
