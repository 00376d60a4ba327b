"""Find places for members in one snapshot, beside those planned before. Locks and writes nothing."""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from placement.candidates.compose.proposals import Proposal
from placement.candidates.planner.member_places import MemberPlaces
from placement.candidates.planner.planner_search import PlannerSearch
from placement.candidates.planner.question import PlannerQuestion, Prepared
from placement.domain.allocation import Claim
from placement.domain.overlay import Overlay
from placement.domain.planner_request import PlannerRequest
from placement.services.cloud_cache import cloud_in
from placement.services.explain import Explained
from placement.services.planner.questions import Composers, PlannerOptions, question_for
from placement.store.connection.unit_of_work import Transaction


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

    def no_place(self, member: ClaimMember) -> Explained | None:
        """Return why a member has no place even alone, if that was found out before and no tree has changed since."""
        if not self.overlay.is_empty:
            return None
        self.question(member)  # Checks the names.
        asked = "place", *member.options.asked_for(member.request)
        known: Explained | None = cloud_in(self.tx).reason_for_nothing(asked)
        return known

    def is_without_place(self, member: ClaimMember) -> bool:
        """Tell whether a member is known to have no place even alone, whatever the reason is by now."""
        if not self.overlay.is_empty:
            return False
        self.question(member)
        asked = "no place", *member.options.asked_for(member.request)
        return bool(cloud_in(self.tx).reason_for_nothing(asked))

    def note_no_place(self, member: ClaimMember, explained: Explained | None) -> None:
        """Remember that a member has no place even alone, and why."""
        if not self.overlay.is_empty:
            return
        cloud, asked = cloud_in(self.tx), member.options.asked_for(member.request)
        if explained is not None:
            cloud.note_nothing(("place", *asked), explained)
        if not member.options.profile.filters:
            cloud.note_nothing(("no place", *asked), reason=True, lasts=True)

    def places_of(self, member: ClaimMember, overlay: Overlay, *, members: int, apart: bool = False) -> MemberPlaces:
        """Return the places for a number of members that want the same; with ``apart`` each takes another tree."""
        question = self.question(member)
        return MemberPlaces(question, overlay, members=members, apart=apart, checks_units=self._checks_units)

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
