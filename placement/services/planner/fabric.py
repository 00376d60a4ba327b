"""Place the members of a gang that has rules on the fabric, such as one rack, or different hosts."""

from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from placement.allocators.fabric import Budget, Crew, Fabric, Mix, Posting, Site
from placement.domain.overlay import Overlay
from placement.domain.planner_request import FabricLevel, GangRules, Together, names_of_hosts
from placement.services.planner.drafting import ClaimMember, Draft, Drafting
from placement.services.planner.gang import GangPlan, one_by_one
from placement.services.planner.host_room import HostRoom, host_room
from placement.services.planner.refusals import NoCandidate, refusal, refusal_of_gang, shortage
from placement.store.connection.unit_of_work import Transaction
from placement.store.marks import hosts_in
from placement.store.search.names import named_providers

if TYPE_CHECKING:
    from placement.candidates.planner.question import Prepared

EVERYWHERE = "everywhere"
"""The single place of a gang that may go anywhere."""

Free = Mapping[int, Sequence[float] | None]
"""By root, what a tree has left of some classes, or an upper bound; None if unknown."""


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

    def beside(self, root: int) -> Sequence[int]:
        """Return the hosts that a member on a host closes, including that host."""
        return [root] if self._located.level.is_host else self._hosts[self._located.names[root]]


def located(tx: Transaction, level: FabricLevel) -> Located:
    """Return the place of each host on a level."""
    members = hosts_in(tx, {*chain.from_iterable(level.places.values())})
    return Located(level, names_of_hosts(level.places, members))


def fabric_layout(tx: Transaction, rules: GangRules, room: HostRoom, overlay: Overlay) -> "FabricLayout":
    """Return the sites for one gang in one snapshot.

    Args:
        tx: the snapshot.
        rules: how members have to lie.
        room: what they want.
        overlay: assumed changes before any of them is placed.
    """
    together = rules.together
    # A preference for few hosts holds anywhere, so it needs no places.
    is_anywhere = together is None or (together.level.is_host and not together.required)
    return FabricLayout(
        room,
        overlay,
        together=None if together is None or is_anywhere else located(tx, together.level),
        apart=located(tx, rules.apart) if rules.apart else None,
        takes_all=together is not None and not together.required,
    )


class FabricLayout:
    """The sites for one gang in one snapshot.

    Args:
        room: what its members want.
        overlay: assumed changes before any of them is placed.
        together: the places in which members lie together; None if they may lie anywhere.
        apart: the places in which members lie apart; None if they need not.
        takes_all: whether hosts outside of all places to lie together in will do.
    """

    def __init__(
        self,
        room: HostRoom,
        overlay: Overlay,
        *,
        together: Located | None,
        apart: Located | None,
        takes_all: bool,
    ) -> None:
        self._room = room
        self._overlay = overlay
        self._together = together
        self._apart = apart
        self._takes_all = takes_all
        self.requested = [search.prepared.composer.requested for search in room.searches]
        """What a member of each kind wants of each class."""
        self.classes = sorted({name for amounts in self.requested for name in amounts})

    def sites(self) -> list[Site]:
        """Return the hosts that may serve, best first, with the sums of what their trees have left.

        A provider over capacity may push such a sum below what the others in the tree have left.
        """
        number = len(self.classes)
        rows = self._room.questions[0].cloud.reader.sums(self.classes)
        return self._sites({row[0]: [row[at] - row[at + number] for at in range(1, number + 1)] for row in rows})

    def sites_by_provider(self) -> list[Site]:
        """Return these hosts, best first, with sums over what each provider has left: slower, but never too low."""
        return self._sites(self._room.questions[0].left_in_trees(self.classes))

    def _sites(self, free: Free) -> list[Site]:
        questions = self._room.questions
        if not all(question.cloud.reader.serving.is_possible for question in questions):
            return []
        known = {**free}
        if any(question.has_sharing for question in questions):
            readers = [question.reader(self._overlay) for question in questions]
            known = dict.fromkeys([tree.root for reader in readers for tree in reader.all_trees()])
        # An overlay may give something back there, so leave the answer to search.
        changed = questions[0].cloud.reader.serving.columns.providers.root_of(self._overlay.changes)
        known.update(dict.fromkeys(changed.values()))
        sites = [self._site(root, known[root]) for root in self._in_order([*known])]
        return [site for site in sites if site is not None]

    def _site(self, root: int, free: Sequence[float] | None) -> Site | None:
        """Return a host as a site, or None if it lacks a place that the rules need."""
        place: Hashable = self._together.place(root) if self._together else EVERYWHERE
        if place is None and self._takes_all:
            place = ("alone", root)
        part = self._apart.place(root) if self._apart else None
        return None if place is None or (self._apart and part is None) else Site(root, place, free, part=part)

    def _in_order(self, roots: Sequence[int]) -> list[int]:
        questions = self._room.questions
        left_out = self._overlay.avoided.union(*[question.avoided for question in questions])
        only = {question.cloud.reader.serving.only_root for question in questions}
        wanted = [root for root in roots if root not in left_out and (None in only or root in only)]
        return self._room.searches[0].in_order(wanted)


class FabricRoom(NamedTuple):
    """What the search has learnt about the room on a fabric.

    Args:
        has_hosts: whether any host satisfies the rules.
        roomiest: the place that holds most members, and how many; None if they want different things.
        most: the most members that each place holds, or None in the same case.
        complete: whether everything was tried.
    """

    has_hosts: bool
    roomiest: tuple[Hashable, int] | None
    most: Mapping[Hashable, int] | None
    complete: bool


def refusal_by_rules(
    drafting: Drafting, members: Sequence[ClaimMember], rules: GangRules, room: FabricRoom
) -> NoCandidate:
    """Return the refusal that explains why there are no places.

    Args:
        drafting: the snapshot.
        members: the members to be placed.
        rules: how they have to lie.
        room: what the search has learnt.
    """
    number = len(members)
    for member in {drafting.prepared(one): one for one in reversed(members)}.values():
        if drafting.best(member, drafting.places_of(member, drafting.overlay, members=1), drafting.overlay) is None:
            return refusal(drafting, GangPlan(stuck=member), None, of=number)
    lacking = shortage(drafting.tx, members, drafting.overlay)
    if lacking is not None:
        return refusal_of_gang(number, lacking.in_words, complete=True, member=members[0].uuid)
    together = _of_together(drafting, rules.together, room, number) if rules.together else ""
    sentence = " ".join(filter(None, (together, _of_apart(rules, room))))
    return refusal_of_gang(number, sentence, complete=room.complete, member=members[0].uuid)


def _of_together(drafting: Drafting, together: Together, room: FabricRoom, number: int) -> str:
    level = together.level
    if not room.has_hosts and not level.is_host:
        return f"No host that could serve them is in a {level.name}: planner.yaml names {level.name}s under aggregates."
    if together.each is not None:
        wanted = f"{together.each} of them are to be in each of {number // together.each} {level.name}s"
        if room.most is None:
            return f"{wanted}."
        with_room = sum([holds >= together.each for holds in room.most.values()])
        return f"{wanted}, and no more than {with_room} have room for that many."
    if not together.required:
        return ""
    if room.roomiest is None:
        return f"No {level.name} has room for all of them."
    place, holds = room.roomiest
    return f"No {level.name} has room for all of them: {_named(drafting, level, place)} has room for {holds}."


def _of_apart(rules: GangRules, room: FabricRoom) -> str:
    if rules.apart is None:
        return ""
    name = rules.apart.name
    different = f"different {name}s"
    wanted = f"They are to be {'on' if rules.apart.is_host else 'in'} {different}"
    if rules.together is None and room.most is not None:
        return f"{wanted}, and no more than {sum(room.most.values())} have room."
    return f"{wanted}."


def _named(drafting: Drafting, level: FabricLevel, place: Hashable) -> str:
    if not level.is_host or not isinstance(place, int):
        return f"{level.name} {place}"
    found = named_providers(drafting.tx, [place])[place]
    return f"host {found.name}"


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
