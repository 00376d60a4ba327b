"""Place the members of a gang that has rules on the fabric, such as one rack, or different hosts.

Hosts are chosen by a search over sums of what trees have left (``allocators.fabric``), and only chosen hosts are
planned in. If they turn out not to hold their members, the search learns that and starts again.
"""

from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from placement.allocators.fabric import Budget, Crew, Fabric, Mix, Posting, Site
from placement.domain.fabric import GangRules, Together
from placement.services.planner.drafting import ClaimMember, Draft, Drafting
from placement.services.planner.fabric_layout import FabricLayout, OnePerPlace, fabric_layout, located
from placement.services.planner.fabric_refusals import FabricRoom, refusal_by_rules
from placement.services.planner.gang import one_by_one
from placement.services.planner.host_room import HostRoom, host_room

if TYPE_CHECKING:
    from placement.candidates.planner.question import Prepared

STEPS_OF_A_FABRIC = 50_000
"""The budget of the search in memory, in hosts looked at."""


def placed_by_rules(drafting: Drafting, members: Sequence[ClaimMember], rules: GangRules) -> Sequence[Draft]:
    """Return a place for each member of a gang.

    Args:
        drafting: the snapshot.
        members: the members, in the order of the request.
        rules: how they have to lie.

    Raises:
        NoCandidate: there are no such places.
    """
    if rules.together is None and rules.apart is not None:
        placement = one_by_one(drafting, members, closing=OnePerPlace(located(drafting.tx, rules.apart)))
        if placement.stuck is None:
            return placement.drafts
    search = _fabric_search(drafting, members, rules)
    drafts = search.found()
    if drafts is None:
        raise refusal_by_rules(drafting, members, rules, search.room())
    return drafts


def _fabric_search(drafting: Drafting, members: Sequence[ClaimMember], rules: GangRules) -> "_FabricSearch":
    """Read the fabric for one gang, and prepare the search on it."""
    kinds = {drafting.prepared(member): member for member in reversed(members)}
    room = host_room(drafting, [*kinds.values()])
    layout = fabric_layout(drafting.tx, rules, room, drafting.overlay)
    return _FabricSearch(
        drafting,
        members,
        together=rules.together,
        numbers={prepared: number for number, prepared in enumerate(kinds)},
        room=room,
        layout=layout,
        sites=layout.sites(),
    )


class _FabricSearch:
    """The search for one gang on one fabric.

    Args:
        drafting: the snapshot.
        members: the members.
        together: the rule for those that lie together.
        numbers: the number of each kind of member.
        room: what hosts hold of them.
        layout: the hosts.
        sites: these as sites, by the sums of their trees.
    """

    def __init__(
        self,
        drafting: Drafting,
        members: Sequence[ClaimMember],
        *,
        together: Together | None,
        numbers: "Mapping[Prepared, int]",
        room: HostRoom,
        layout: FabricLayout,
        sites: Sequence[Site],
    ) -> None:
        self._drafting = drafting
        self._members = members
        self._together = together
        self._number = numbers
        self._room = room
        self._layout = layout
        self._budget = Budget(STEPS_OF_A_FABRIC)
        self._lay_out(sites)

    def found(self) -> Sequence[Draft] | None:
        """Return a place for each member, or None."""
        found = self._found()
        if found is None:  # Sums of trees may have been too low.
            self._lay_out(self._layout.sites_by_provider())
            found = self._found()
        return found

    def room(self) -> FabricRoom:
        """Return what the search has learnt about the room."""
        complete = self._room.complete and not self._budget.was_hit
        is_one_kind = len(self._number) == 1
        roomiest = self._fabric.roomiest(budget=self._budget) if is_one_kind and self._by_place else None
        most = self._fabric.most(0) if is_one_kind else None
        return FabricRoom(bool(self._by_place), roomiest, most, complete=complete)

    def _lay_out(self, sites: Sequence[Site]) -> None:
        """Start anew on a fabric of these hosts."""
        self._by_place: dict[Hashable, list[Site]] = defaultdict(list)
        for site in sites:
            self._by_place[site.place].append(site)
        amounts = [[of_one.get(name, 0) for name in self._layout.classes] for of_one in self._layout.requested]
        self._fabric = Fabric(sites, Crew(self._mix(self._members), amounts), self._refused)

    def _found(self) -> list[Draft] | None:
        together, members = self._together, self._members
        if together is not None and together.each is not None:
            groups = [members[start : start + together.each] for start in range(0, len(members), together.each)]
            postings = self._fabric.together_each([self._mix(group) for group in groups], budget=self._budget)
            return None if postings is None else self._dealt(groups)
        is_one = together is None or together.required
        postings = self._fabric.together(most_places=1 if is_one else len(self._by_place), budget=self._budget)
        return None if postings is None else self._dealt([members])

    def _dealt(self, groups: Sequence[Sequence[ClaimMember]]) -> list[Draft]:
        """Deal the places found to members, group by group."""
        found: list[Draft] = []
        drafts = iter(self._room.drafts)
        for group in groups:
            waiting: dict[Prepared, list[ClaimMember]] = defaultdict(list)
            for member in reversed(group):
                waiting[self._drafting.prepared(member)].append(member)
            for _ in group:
                draft = next(drafts)
                member = waiting[self._drafting.prepared(draft.member)].pop()
                consumer = replace(member.consumer, allocations=draft.consumer.allocations)
                found.append(replace(draft, member=member, consumer=consumer))
        return found

    def _mix(self, members: Sequence[ClaimMember]) -> Mix:
        counts = Counter(self._number[self._drafting.prepared(member)] for member in members)
        return tuple([counts[kind] for kind in range(len(self._number))])

    def _refused(self, postings: Sequence[Posting]) -> Sequence[Posting]:
        """Return what hosts do not hold. If single providers rule out a host, check its neighbours as well."""
        refused: list[Posting] = []
        for kind in range(len(self._number)):
            alone = tuple([int(one == kind) for one in range(len(self._number))])
            if self._room.without_any(kind, [site.name for site, mix in postings if mix[kind]]):
                around = [site for place in {site.place for site, _mix in postings} for site in self._by_place[place]]
                without = self._room.without_any(kind, [site.name for site in around])
                refused += [(site, alone) for site in around if site.name in without]
        return refused or self._room.refused(postings)
