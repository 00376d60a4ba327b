"""Place the members of a gang that has rules on the fabric, such as one rack, or different hosts.

Hosts are chosen by a search over sums of what trees have left (``allocators.fabric``), and only chosen hosts are
planned in. If they turn out not to hold their members, the search learns that and starts again.
"""

from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import NamedTuple

from placement.allocators import Budget
from placement.allocators.fabric import Fabric
from placement.allocators.fabric.search import MembersByKind, Mix, Posting, Site
from placement.candidates.planner.question import Prepared
from placement.domain.planner_request import FabricLevel, GangRules, Together, names_of_hosts
from placement.services.planner.gang import ClaimMember, Draft, Drafting, GangPlan, Located, OnePerPlace, one_by_one
from placement.services.planner.host_room import HostRoom
from placement.services.planner.refusals import NoCandidate, refusal, refusal_of_gang, shortage
from placement.store.connection.database import Transaction
from placement.store.marks import hosts_in
from placement.store.search.names import named_providers

STEPS_OF_A_FABRIC = 50_000
"""The budget of the search in memory, in hosts looked at."""

EVERYWHERE = "everywhere"
"""The single place of a gang that may go anywhere."""

Free = Mapping[int, Sequence[float] | None]
"""By root, what a tree has left of some classes, or an upper bound; None if unknown."""


def placed_by_rules(drafting: Drafting, members: Sequence[ClaimMember], rules: GangRules) -> Sequence[Draft]:
    """Return a place for each member of a gang.

    Raises:
        NoCandidate: there are no such places.
    """
    if rules.together is None and rules.separate_level is not None:
        placement = one_by_one(drafting, members, closing=OnePerPlace(located(drafting.tx, rules.separate_level)))
        if placement.stuck is None:
            return placement.drafts
    kinds = {drafting.prepared(member): member for member in reversed(members)}
    search = _FabricSearch(drafting, members, rules, [*kinds], HostRoom(drafting, [*kinds.values()]))
    drafts = search.drafts()
    if drafts is None:
        raise refusal_by_rules(drafting, members, rules, search.room())
    return drafts


def located(tx: Transaction, level: FabricLevel) -> Located:
    """Return the place of each host on a level."""
    members = hosts_in(tx, {*chain.from_iterable(level.places.values())})
    return Located(level, names_of_hosts(level.places, members))


@dataclass
class _FabricSearch:
    """The search for one gang on the hosts of one snapshot."""

    drafting: Drafting
    members: Sequence[ClaimMember]
    rules: GangRules
    kinds: Sequence[Prepared]
    hosts: HostRoom

    @cached_property
    def _budget(self) -> Budget:
        return Budget(STEPS_OF_A_FABRIC)

    @cached_property
    def _classes(self) -> Sequence[str]:
        return sorted({name for kind in self.kinds for name in kind.composer.requested})

    @cached_property
    def _together(self) -> "Located | None":
        """The places in which members lie together; None if they may lie anywhere."""
        together = self.rules.together
        # A preference for few hosts holds anywhere, so it needs no places.
        if together is None or (together.level.is_host and not together.required):
            return None
        return located(self.drafting.tx, together.level)

    @cached_property
    def _separating(self) -> "Located | None":
        """The places in which members lie apart; None if they need not."""
        return located(self.drafting.tx, self.rules.separate_level) if self.rules.separate_level else None

    def drafts(self) -> Sequence[Draft] | None:
        """Return a place for each member, or None."""
        number, questions = len(self._classes), self.hosts.questions
        rows = questions[0].cloud.reader.sums(self._classes)
        # A provider over capacity may push a sum below what the others in the tree have left.
        sums = {row[0]: [row[at] - row[at + number] for at in range(1, number + 1)] for row in rows}
        drafts = self._drafts_on(self._sites(sums))
        return self._drafts_on(self._sites(questions[0].left_in_trees(self._classes))) if drafts is None else drafts

    def room(self) -> "FabricRoom":
        """Return what the search has learnt about the room."""
        complete = self.hosts.complete and not self._budget.was_hit
        is_one_kind = len(self.kinds) == 1
        roomiest = self._fabric.roomiest(budget=self._budget) if is_one_kind and self._by_place else None
        max_members = self._fabric.upper_bounds(0) if is_one_kind else None
        return FabricRoom(bool(self._by_place), roomiest, max_members, complete=complete)

    def _drafts_on(self, sites: Sequence[Site]) -> list[Draft] | None:
        """Search anew on a fabric of these hosts."""
        self._by_place: dict[Hashable, list[Site]] = defaultdict(list)
        for site in sites:
            self._by_place[site.place].append(site)
        amounts = [[kind.composer.requested.get(name, 0) for name in self._classes] for kind in self.kinds]
        self._fabric = Fabric(sites, MembersByKind(self._mix(self.members), amounts), self._refused)
        together, members = self.rules.together, self.members
        if together is not None and together.group_size is not None:
            groups = [
                members[start : start + together.group_size] for start in range(0, len(members), together.group_size)
            ]
            postings = self._fabric.together_each([self._mix(group) for group in groups], budget=self._budget)
            return None if postings is None else self._dealt(groups)
        most_places = 1 if together is None or together.required else len(self._by_place)
        postings = self._fabric.together(most_places=most_places, budget=self._budget)
        return None if postings is None else self._dealt([members])

    def _sites(self, free: Free) -> list[Site]:
        """Return the hosts that may serve as sites, best first."""
        questions, overlay = self.hosts.questions, self.drafting.overlay
        if not all(question.cloud.reader.serving.is_possible for question in questions):
            return []
        free_in = {**free}
        if any(question.has_sharing for question in questions):
            readers = [question.reader(overlay) for question in questions]
            free_in = dict.fromkeys([tree.root for reader in readers for tree in reader.all_trees()])
        # An overlay may give something back there, so leave the answer to search.
        changed = questions[0].cloud.reader.serving.columns.providers.root_of(overlay.changes)
        free_in.update(dict.fromkeys(changed.values()))
        left_out = overlay.avoided.union(*[question.avoided for question in questions])
        only = {question.cloud.reader.serving.only_root for question in questions}
        roots = [root for root in free_in if root not in left_out and (None in only or root in only)]
        sites = [self._site(root, free_in[root]) for root in self.hosts.searches[0].in_order(roots)]
        return [site for site in sites if site is not None]

    def _site(self, root: int, free: Sequence[float] | None) -> Site | None:
        """Return a host as a site, or None if it lacks a place that the rules need."""
        place: Hashable = self._together.place(root) if self._together else EVERYWHERE
        if place is None and self.rules.together is not None and not self.rules.together.required:
            place = ("alone", root)
        part = self._separating.place(root) if self._separating else None
        return None if place is None or (self._separating and part is None) else Site(root, place, free, part=part)

    def _dealt(self, groups: Sequence[Sequence[ClaimMember]]) -> list[Draft]:
        """Deal the places found to members, group by group."""
        dealt: list[Draft] = []
        drafts = iter(self.hosts.drafts)
        for group in groups:
            waiting: dict[Prepared, list[ClaimMember]] = defaultdict(list)
            for member in reversed(group):
                waiting[self.drafting.prepared(member)].append(member)
            for _ in group:
                draft = next(drafts)
                member = waiting[self.drafting.prepared(draft.member)].pop()
                consumer = replace(member.consumer, allocations=draft.consumer.allocations)
                dealt.append(replace(draft, member=member, consumer=consumer))
        return dealt

    def _mix(self, members: Sequence[ClaimMember]) -> Mix:
        counts = Counter(map(self.drafting.prepared, members))
        return tuple([counts[kind] for kind in self.kinds])

    def _refused(self, postings: Sequence[Posting]) -> Sequence[Posting]:
        """Return what hosts do not hold. If single providers rule out a host, check its neighbours as well."""
        refused: list[Posting] = []
        for kind in range(len(self.kinds)):
            alone = tuple([int(number == kind) for number in range(len(self.kinds))])
            if self.hosts.without_any(kind, [site.name for site, mix in postings if mix[kind]]):
                around = [site for place in {site.place for site, _mix in postings} for site in self._by_place[place]]
                without = self.hosts.without_any(kind, [site.name for site in around])
                refused += [(site, alone) for site in around if site.name in without]
        return refused or self.hosts.refused(postings)


class FabricRoom(NamedTuple):
    """What the search has learnt about the room on a fabric.

    Args:
        has_hosts: whether any host satisfies the rules.
        roomiest: the place that holds most members, and how many; None if they want different things.
        max_members: the most members that each place holds, or None in the same case.
        complete: whether everything was tried.
    """

    has_hosts: bool
    roomiest: tuple[Hashable, int] | None
    max_members: Mapping[Hashable, int] | None
    complete: bool


def refusal_by_rules(
    drafting: Drafting, members: Sequence[ClaimMember], rules: GangRules, room: FabricRoom
) -> NoCandidate:
    """Return the refusal that explains why there are no places."""
    number = len(members)
    for member in {drafting.prepared(member): member for member in reversed(members)}.values():
        if drafting.best(member, drafting.places_of(member, drafting.overlay, members=1), drafting.overlay) is None:
            return refusal(drafting, GangPlan(stuck=member), None, number=number)
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
    if together.group_size is not None:
        rule = f"{together.group_size} of them are to be in each of {number // together.group_size} {level.name}s"
        if room.max_members is None:
            return f"{rule}."
        with_room = sum([holds >= together.group_size for holds in room.max_members.values()])
        return f"{rule}, and no more than {with_room} have room for that many."
    if not together.required:
        return ""
    if room.roomiest is None:
        return f"No {level.name} has room for all of them."
    place, holds = room.roomiest
    return f"No {level.name} has room for all of them: {_named(drafting, level, place)} has room for {holds}."


def _of_apart(rules: GangRules, room: FabricRoom) -> str:
    if rules.separate_level is None:
        return ""
    name = rules.separate_level.name
    different = f"different {name}s"
    rule = f"They are to be {'on' if rules.separate_level.is_host else 'in'} {different}"
    if rules.together is None and room.max_members is not None:
        return f"{rule}, and no more than {sum(room.max_members.values())} have room."
    return f"{rule}."


def _named(drafting: Drafting, level: FabricLevel, place: Hashable) -> str:
    if not level.is_host or not isinstance(place, int):
        return f"{level.name} {place}"
    host = named_providers(drafting.tx, [place])[place]
    return f"host {host.name}"
