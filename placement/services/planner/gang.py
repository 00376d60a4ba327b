"""Places for members in one snapshot: for all of a gang or for none. Locks and writes nothing.

First each member, the largest first, takes the best that is left. That is fast and mostly enough. If a member finds
nothing, a backtracking search places all of them again: a member in the way of another moves on to its next best place,
in the same tree or another. What members take is an overlay, so backtracking costs nothing.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice

from placement.allocators import Budget
from placement.candidates.compose.proposals import Proposal, ProposalComposer
from placement.candidates.planner.member_places import MemberPlaces
from placement.candidates.planner.planner_search import PlannerSearch
from placement.candidates.planner.question import PlannerQuestion
from placement.domain.inventory import Claim
from placement.domain.planner_request import FabricLevel, PlannerRequest
from placement.domain.tree import Overlay
from placement.services.planner.questions import Composers, PlannerOptions, question_for
from placement.store.connection.database import Transaction


@dataclass(frozen=True, slots=True)
class ClaimMember:
    """A consumer, whose allocations are not known yet, with its request and the operator's options for that.

    It ``replaces`` what it holds in the same transaction; ``explains``: why, if it has no place even alone.
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
    """What one member would hold: a proposal, by ids, and the consumer with its allocations.

    ``mappings`` has who serves each group, ``alone`` the providers that nobody else may use, ``roots`` those of the
    trees.
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


@dataclass
class Drafting:
    """The places of members in one snapshot; what equal members want is read once for all of them.

    Each lost race, ``doubt``, doubles among how many of the best places chance decides. ``checks_units`` drops places
    whose inventories disallow the sum of what is taken; they are rare, and the write would detect them.
    """

    tx: Transaction
    composers: Composers
    overlay: Overlay
    doubt: int = 0
    checks_units: bool = True
    _questions: dict[ProposalComposer, PlannerQuestion] = field(default_factory=dict)

    def composer(self, member: ClaimMember) -> ProposalComposer:
        """Return what composes for a member: the same object for all members that want the same."""
        return self.composers.composer(member.request, member.options)

    def search(self, member: ClaimMember, overlay: Overlay, *, places: int = 1) -> PlannerSearch:
        """Return the search of a member under an overlay, for one or several places of each tree."""
        if places == 1:
            return PlannerSearch(self.question(member), overlay)
        request = replace(member.request, per_tree=places)
        composer = self.composers.composer(request, member.options)
        if composer not in self._questions:
            self._questions[composer] = self.question(member).for_places(composer)
        return PlannerSearch(self._questions[composer], overlay)

    def question(self, member: ClaimMember) -> PlannerQuestion:
        """Return what is known of the snapshot for all members that want the same."""
        composer = self.composer(member)
        if composer not in self._questions:
            self._questions[composer] = question_for(self.tx, member.request, member.options, composers=self.composers)
        return self._questions[composer]

    def places_of(self, member: ClaimMember, overlay: Overlay, *, members: int, isolate: bool = False) -> MemberPlaces:
        """Return the places for a number of members that want the same; with ``isolate`` each takes another tree."""
        question = self.question(member)
        return MemberPlaces(question, overlay, members=members, isolate=isolate, checks_units=self.checks_units)

    def best(self, member: ClaimMember, places: MemberPlaces, overlay: Overlay) -> Draft | None:
        """Return the best place for a member, or one of the best; None if there is none."""
        proposals = places.best(overlay, number=min(1 << self.doubt, MAX_CHOICES))
        if not proposals:
            return None
        return draft_of(member, random.choice(proposals), places.search)  # noqa: S311 - spreads load, keeps no secret

    def drafts(self, member: ClaimMember, proposals: Sequence[Proposal], search: PlannerSearch) -> Iterator[Draft]:
        """Yield the proposals that inventories allow, as drafts."""
        for proposal in proposals:
            if not self.checks_units or search.allows(proposal):
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
    """A draft for each member in the order of placement, or for each before the stuck one, which found nothing.

    ``complete`` says whether everything was tried, ``is_proven`` whether that one has no place wherever the others are.
    """

    drafts: Sequence[Draft] = ()
    stuck: ClaimMember | None = None
    complete: bool = True
    is_proven: bool = False


def by_difficulty(members: Sequence[ClaimMember]) -> list[ClaimMember]:
    """Return members in the order of placement, largest first: those must find room before it is fragmented."""

    def difficulty(member: ClaimMember) -> tuple[int, int]:
        request = member.request
        amount = sum(request.requested.values()) + sum(request.paths.values())
        rules = [rule.required for rule in request.affinity] + [rule.required for rule in request.within]
        return amount, sum(rules) + len(request.exclusive)

    return sorted(members, key=difficulty, reverse=True)


@dataclass(frozen=True)
class Located:
    """A level of the fabric, with the name of each host's place."""

    level: FabricLevel
    names: Mapping[int, str]

    def place(self, root: int) -> Hashable:
        """Return the place of a host, None if it is in none."""
        return root if self.level.is_host else self.names.get(root)

    @cached_property
    def _hosts(self) -> Mapping[str, Sequence[int]]:
        hosts: dict[str, list[int]] = defaultdict(list)
        for root, name in self.names.items():
            hosts[name].append(root)
        return hosts

    def hosts_beside(self, root: int) -> Sequence[int]:
        """Return the hosts in the place of a host, itself included."""
        return [root] if self.level.is_host else self._hosts[self.names[root]]


def one_by_one(drafting: Drafting, members: Sequence[ClaimMember], *, separating: Located | None = None) -> GangPlan:
    """Give each member in turn the best place that is left, if need be none in the place of another."""
    placing = Placing(drafting, members, separating)
    for member in members:
        if not placing.has_placed(member):
            complete, is_proven = placing.places_of(member).complete, placing.are_too_many
            return GangPlan(placing.drafts, member, complete=complete, is_proven=is_proven)
    return GangPlan(placing.drafts)


def as_many_as_fit(
    drafting: Drafting, members: Sequence[ClaimMember]
) -> tuple[Sequence[Draft], Sequence[tuple[GangPlan, Sequence[ClaimMember]]]]:
    """Give each member in turn the best place that is left, if there is any; who wants the same as a stuck one waits.

    Returns the drafts, and for each kind of member without a place how far the first of them got, and all of them.
    """
    placing = Placing(drafting, members)
    stuck: dict[ProposalComposer, tuple[GangPlan, list[ClaimMember]]] = {}
    for member in members:
        kind = drafting.composer(member)
        if kind in stuck:
            stuck[kind][1].append(member)
        elif not placing.has_placed(member):
            stuck[kind] = GangPlan([*placing.drafts], member, placing.places_of(member).complete), [member]
    return placing.drafts, list(stuck.values())


class Placing:
    """Places members one after the other. Each is allotted an equal part of the remaining steps."""

    def __init__(self, drafting: Drafting, members: Sequence[ClaimMember], separating: Located | None = None) -> None:
        self.drafts: list[Draft] = []
        self._drafting = drafting
        self._separating = separating
        self._closed = set[int]()
        self._overlay = drafting.overlay
        self._waiting = len(members)
        self._kinds = Counter(map(drafting.composer, members))
        self._places = dict[ProposalComposer, MemberPlaces]()

    def places_of(self, member: ClaimMember) -> MemberPlaces:
        """Return the places for a member."""
        kind = self._drafting.composer(member)
        if kind not in self._places:
            self._places[kind] = self._drafting.places_of(
                member, self._overlay, members=self._kinds[kind], isolate=self._separating is not None
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
        separating = self._separating
        while draft := self._drafting.best(member, self.places_of(member), self._overlay):
            if separating is None or separating.place(draft.proposal.root) is not None:
                break
            self._close([draft.proposal.root])
        else:
            return False
        self.drafts.append(draft)
        self._overlay = draft.upon(self._overlay)
        for places in self._places.values():
            places.note(draft.roots)
        if separating is not None:
            self._close(separating.hosts_beside(draft.proposal.root))
        return True

    def _close(self, roots: Collection[int]) -> None:
        self._closed.update(roots)
        for places in self._places.values():
            places.leave_out(roots)


def together(drafting: Drafting, members: Sequence[ClaimMember]) -> GangPlan:
    """Place all members, backtracking where needed."""
    roots = dict[ProposalComposer, Sequence[int]]()
    for member in members:  # Before anybody is placed: later none of these trees has more room.
        if (composer := drafting.composer(member)) not in roots:
            roots[composer] = list(drafting.search(member, drafting.overlay).roots())
    search = GangSearch(drafting, roots, Budget(PLACES_OF_A_GANG))
    drafts = search.placed(members, drafting.overlay)
    return GangPlan(stuck=members[0], complete=search.is_complete) if drafts is None else GangPlan(drafts)


_ExhaustedTree = tuple[ProposalComposer, int]
"""A kind of member, and the root of a tree that no other one of them needs to try: they are interchangeable.

Either it has no room for one, or the other members were stuck wherever one was placed in it.
"""


@dataclass
class GangSearch:
    """A depth-first search through the places of members, in the trees where each kind may fit, the best first."""

    drafting: Drafting
    roots: Mapping[ProposalComposer, Sequence[int]]
    tries: Budget
    is_complete: bool = True
    """Whether there is definitely no other way than those tried."""

    def placed(
        self, members: Sequence[ClaimMember], overlay: Overlay, exhausted: tuple[_ExhaustedTree, ...] = ()
    ) -> list[Draft] | None:
        """Return places for members under an overlay; None if there are none, or too many were tried."""
        if not members:
            return []
        member, members_after = members[0], members[1:]
        self.drafting.composers.allot(among=len(members))
        search, kind = self.drafting.search(member, overlay), self.drafting.composer(member)
        without = {root for composer, root in exhausted if composer is kind}
        tried: list[int] = []
        for root in [root for root in self.roots[kind] if root not in without]:
            for draft in self._inside(root, member, overlay, search):
                if not self.tries.take():
                    self.is_complete = False
                    return None
                done = [(kind, tree) for tree in (*tried, *search.exhausted) if tree != root]
                drafts = self.placed(members_after, draft.upon(overlay), (*exhausted, *done))
                if drafts is not None:
                    return [draft, *drafts]
                if self.tries.was_hit:
                    return None
            tried.append(root)
            budget = self.drafting.composers.budget
            budget.take(STEPS_FOR_A_GROUP * len(search.composer.plan.slots))
            if budget.is_used_up:
                self.is_complete = False
                break
        self.is_complete = self.is_complete and search.complete and all(search.exhausted.values())
        return None

    def _inside(self, root: int, member: ClaimMember, overlay: Overlay, search: PlannerSearch) -> Iterator[Draft]:
        """Yield the places in a tree, up to the limit; the best one costs a fraction of what all of them do."""
        best = [*islice(search.proposals(only=root), 1)]
        yield from self.drafting.drafts(member, best, search)
        if best:
            # One more than are tried, which shows whether any were left out.
            further = self.drafting.search(member, overlay, places=PLACES_OF_A_TREE + 1)
            proposals = [*islice(further.proposals(only=root), PLACES_OF_A_TREE + 1)]
            self.is_complete = self.is_complete and len(proposals) <= PLACES_OF_A_TREE and further.complete
            proposals_after = [proposal for proposal in proposals[:PLACES_OF_A_TREE] if proposal != best[0]]
            yield from self.drafting.drafts(member, proposals_after, further)
