"""Places for all members of a gang or for none, planned in one snapshot.

First each member, the largest first, takes the best that is left. That is fast and mostly enough. If a member finds
nothing, a backtracking search places all of them again: a member in the way of another moves on to its next best place,
in the same tree or another. What members take is an overlay, so backtracking costs nothing.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple, Protocol

from placement.candidates.compose.proposals import Proposal
from placement.candidates.planner.member_places import MemberPlaces
from placement.candidates.planner.question import Prepared
from placement.domain.overlay import Overlay
from placement.services.planner.drafting import ClaimMember, Draft, Drafting

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


class Closes(Protocol):
    """A rule that closes hosts to members because of others, as "each in a rack of its own" does."""

    def is_open(self, root: int) -> bool:
        """Tell whether a host may be used at all."""

    def beside(self, root: int) -> Collection[int]:
        """Return the hosts that a member on a host closes, including that host."""


def one_by_one(drafting: Drafting, members: Sequence[ClaimMember], *, closing: Closes | None = None) -> GangPlan:
    """Give each member in turn the best place that is left.

    Args:
        drafting: the snapshot.
        members: the members.
        closing: closes hosts because of members on others; None for no such rule.
    """
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

    def __init__(self, drafting: Drafting, members: Sequence[ClaimMember], closing: Closes | None = None) -> None:
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
                member, self._overlay, members=self._kinds[kind], apart=self._closing is not None
            )
            self._places[kind].leave_out(self._closed)
        return self._places[kind]

    @property
    def are_too_many(self) -> bool:
        """Whether a member that found nothing has no place wherever the others are, as far as is easily told."""
        members = self._kinds.total()
        return len(self._kinds) == 1 and all(one.most(members) < members for one in self._places.values())

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
            places.note(draft.proposal, draft.roots)
        if self._closing is not None:
            self._close(self._closing.beside(draft.proposal.root))
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
    search = _GangSearch(drafting, _roots_for(drafting, members))
    try:
        drafts = search.placed(members, drafting.overlay)
    except _OutOfPlaces:
        return GangPlan(stuck=members[0], complete=False)
    if drafts is None:
        return GangPlan(stuck=members[0], complete=search.is_complete)
    return GangPlan(drafts)


def _roots_for(drafting: Drafting, members: Sequence[ClaimMember]) -> Mapping[Prepared, Sequence[int]]:
    """Return the trees where each kind of member may fit, most promising first."""
    # Before anybody is placed: later none of these trees has more room.
    roots = dict[Prepared, list[int]]()
    for member in members:
        if (prepared := drafting.prepared(member)) not in roots:
            roots[prepared] = list(drafting.search(member, drafting.overlay).roots())
    return roots


class _OutOfPlaces(Exception):
    """The limit on places tried has been reached."""


class _ExhaustedTree(NamedTuple):
    """A tree that is exhausted for members that want the same.

    Either it has no room, or the other members were stuck wherever one of these was placed in it. Members that want the
    same are interchangeable, so no other one of them needs to go there.
    """

    wanted: Prepared
    root: int


class _PlacesUnder:
    """The places of a member under an overlay, tree by tree; what follows the best one in a tree only if it is needed.

    Args:
        drafting: the snapshot.
        member: the member.
        overlay: what the members before it take.
    """

    def __init__(self, drafting: Drafting, member: ClaimMember, overlay: Overlay) -> None:
        self._drafting = drafting
        self._member = member
        self._overlay = overlay
        self._search = drafting.search(member, overlay)
        self._are_few = True

    @property
    def groups(self) -> int:
        """How many groups the member wants."""
        return len(self._search.prepared.plan.slots)

    @property
    def exhausted(self) -> Mapping[int, bool]:
        """By root, the trees where nothing was found, and whether that is proved."""
        return self._search.exhausted

    @property
    def are_all(self) -> bool:
        """Whether there are definitely no other places in the trees that were looked at to the end."""
        return self._are_few and self._search.complete and all(self.exhausted.values())

    def inside(self, root: int) -> Iterator[Draft]:
        """Yield the places in a tree, up to the limit; the best one costs a fraction of what all of them do."""
        best = [*islice(self._search.proposals(only=root), 1)]
        yield from self._drafting.drafts(self._member, best, self._search)
        if best:
            yield from self._others(root, best[0])

    def _others(self, root: int, best: Proposal) -> Iterator[Draft]:
        # One more than are tried, which shows whether any were left out.
        search = self._drafting.search(self._member, self._overlay, places=PLACES_OF_A_TREE + 1)
        found = [*islice(search.proposals(only=root), PLACES_OF_A_TREE + 1)]
        self._are_few = self._are_few and len(found) <= PLACES_OF_A_TREE and search.complete
        others = [one for one in found[:PLACES_OF_A_TREE] if one != best]
        yield from self._drafting.drafts(self._member, others, search)


class _GangSearch:
    """A depth-first search through the places of members.

    Args:
        drafting: the snapshot.
        roots: the trees where each kind of member may fit.
    """

    def __init__(self, drafting: Drafting, roots: Mapping[Prepared, Sequence[int]]) -> None:
        self._drafting = drafting
        self._places_left = PLACES_OF_A_GANG
        self._roots = roots
        self.is_complete = True

    def placed(
        self, members: Sequence[ClaimMember], overlay: Overlay, left: tuple[_ExhaustedTree, ...] = ()
    ) -> list[Draft] | None:
        """Return places for members under an overlay, or None if there are none.

        Raises:
            _OutOfPlaces: too many were tried.
        """
        if not members:
            return []
        first, rest = members[0], members[1:]
        self._drafting.composers.allot(among=len(members))
        places = _PlacesUnder(self._drafting, first, overlay)
        wanted = self._drafting.prepared(first)
        without = {one.root for one in left if one.wanted is wanted}
        tried: list[int] = []
        for root in self._roots[wanted]:
            if root in without:
                continue
            for draft in places.inside(root):
                self._take_place()
                done = [_ExhaustedTree(wanted, one) for one in (*tried, *places.exhausted) if one != root]
                found = self.placed(rest, draft.upon(overlay), (*left, *done))
                if found is not None:
                    return [draft, *found]
            tried.append(root)
            if not self._goes_on(places):
                break
        self.is_complete = self.is_complete and places.are_all
        return None

    def _take_place(self) -> None:
        self._places_left -= 1
        if self._places_left < 0:
            raise _OutOfPlaces

    def _goes_on(self, places: "_PlacesUnder") -> bool:
        """Tell whether to go on to another tree after one that did not help."""
        budget = self._drafting.composers.budget
        budget.take(STEPS_FOR_A_GROUP * places.groups)
        self.is_complete = self.is_complete and not budget.is_used_up
        return not budget.is_used_up
