"""Place the members of a gang that has rules on the fabric, such as one rack, or different hosts.

Hosts are chosen by a search over sums of what trees have left (``allocators.fabric``). In a chosen host members are
planned one after the other; if one finds nothing beside the others, all ways to place them are tried, within limits. If
hosts do not hold their members, the search learns that and starts again.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, islice
from typing import NamedTuple

from placement.allocators import Budget
from placement.allocators.fabric import Fabric
from placement.allocators.fabric.search import MembersByKind, Mix, Posting, Site
from placement.candidates.compose.proposals import ProposalComposer
from placement.candidates.compose.slots import CanonicalForm
from placement.candidates.planner.planner_search import PlannerSearch
from placement.candidates.planner.planner_trees import HostSketch, read_off
from placement.candidates.planner.question import PlannerQuestion
from placement.domain.planner_request import FabricLevel, GangRules, names_of_hosts
from placement.domain.tree import Overlay
from placement.services.planner.candidates import NoCandidate, refusal, refusal_of_gang, shortage
from placement.services.planner.gang import (
    PLACES_OF_A_GANG,
    ClaimMember,
    Draft,
    Drafting,
    GangPlan,
    GangSearch,
    Located,
    draft_of,
    one_by_one,
)
from placement.store.connection.database import Transaction
from placement.store.marks import hosts_in
from placement.store.search.names import named_providers


class _HostWithMembers(NamedTuple):
    """A host filled with members: the overlay with them, and their drafts."""

    overlay: Overlay
    drafts: tuple[Draft, ...] = ()


@dataclass
class HostRoom:
    """What hosts of a snapshot hold of a gang, given one member of each kind."""

    drafting: Drafting
    members: Sequence[ClaimMember]
    drafts: list[Draft] = field(default_factory=list)
    """The drafts of members on the hosts of the last query, host by host."""
    _filled_hosts: dict[CanonicalForm, dict[Mix, _HostWithMembers | None]] = field(default_factory=dict)
    _models: dict[CanonicalForm, HostSketch] = field(default_factory=dict)
    _tries: Budget = field(default_factory=lambda: Budget(PLACES_OF_A_GANG))
    _is_certain: bool = True

    @cached_property
    def questions(self) -> Sequence[PlannerQuestion]:
        """The question of each kind."""
        return [self.drafting.question(member) for member in self.members]

    @cached_property
    def searches(self) -> Sequence[PlannerSearch]:
        """The search of each kind, for one member at a time."""
        return [PlannerSearch(question, self.drafting.overlay, limit=1) for question in self.questions]

    @cached_property
    def _is_tree_by_tree(self) -> bool:
        return all(question.is_tree_by_tree for question in self.questions)

    @property
    def complete(self) -> bool:
        """Whether hosts definitely do not hold what was refused."""
        return self._is_certain and all(search.complete for search in self.searches)

    def without_any(self, kind: int, roots: Collection[int]) -> set[int]:
        """Return the hosts without a place for even one member of a kind, judging by single providers."""
        return {*roots} - self.searches[kind].serving(roots)

    def refused(self, postings: Sequence[Posting]) -> list[Posting]:
        """Return the hosts that do not hold the members posted there, each with the mix that it does not hold."""
        for kind, search in enumerate(self.searches):
            search.read([site.name for site, mix in postings if mix[kind]])
        self.drafts = []
        refused = []
        overlay = self.drafting.overlay
        for site, mix in postings:
            host = self._sketch(site.name) if self._is_tree_by_tree else None
            filled, reached = self._filled(site.name, mix, overlay, host)
            if filled is None:
                refused.append((site, reached))
                self._is_certain = self._is_certain and (self._is_tree_by_tree or overlay is self.drafting.overlay)
                continue
            self.drafts += self._in_host(filled.drafts, host) if host else filled.drafts
            if not self._is_tree_by_tree:  # What one host takes may be missing in the next.
                overlay = filled.overlay
        return refused

    def _sketch(self, root: int) -> HostSketch:
        """Sketch a host as all kinds see it, each in its own way; a host that the overlay changes matches no other."""
        hosts = [host for search in self.searches if (host := search.sketch(root))]
        if len(hosts) < len(self.searches) or not self.drafting.overlay.within(hosts[0].providers).is_empty:
            return HostSketch((root,), ())
        return HostSketch(tuple([host.form for host in hosts]), hosts[0].providers)

    def _in_host(self, drafts: Sequence[Draft], host: HostSketch) -> Sequence[Draft]:
        model = self._models[host.form]
        if model.providers == host.providers:
            return drafts
        kinds = {id(kind): number for number, kind in enumerate(self.members)}
        return [
            draft_of(draft.member, read_off(draft.proposal, model, host), self.searches[kinds[id(draft.member)]])
            for draft in drafts
        ]

    def _filled(
        self, root: int, mix: Mix, overlay: Overlay, host: HostSketch | None
    ) -> tuple[_HostWithMembers | None, Mix]:
        """Return a host with members in it; or None, and the mix that it does not hold."""
        hosts: dict[Mix, _HostWithMembers | None] = {}
        if host is not None:
            hosts = self._filled_hosts.setdefault(host.form, {})
            model = self._models.setdefault(host.form, host)
            root = model.providers[host.providers.index(root)] if host.providers else root
        filled = _HostWithMembers(overlay)
        for kind, reached in _steps(mix):
            if reached not in hosts:
                hosts[reached] = self._with_one_more(root, kind, filled) or self._anew(root, reached, overlay)
            if (host_with_more := hosts[reached]) is None:
                return None, reached
            filled = host_with_more
        return filled, mix

    def _with_one_more(self, root: int, kind: int, filled: _HostWithMembers) -> _HostWithMembers | None:
        search = self.searches[kind]
        if self._is_tree_by_tree:
            ranked = search.again(root) if search.expected(root, filled.overlay) else None
            proposals = [ranked[1]] if ranked else []
        else:
            search = self.drafting.search(self.members[kind], filled.overlay)
            proposals = [*islice(search.proposals(only=root), 1)]
        for draft in self.drafting.drafts(self.members[kind], proposals, search):
            return _HostWithMembers(draft.upon(filled.overlay), (*filled.drafts, draft))
        return None

    def _anew(self, root: int, mix: Mix, overlay: Overlay) -> _HostWithMembers | None:
        """Try all ways to place members in a host; a single one has been tried already."""
        members = [self.members[kind] for kind, _reached in _steps(mix)]
        if len(members) < 2:
            return None
        search = GangSearch(self.drafting, {self.drafting.composer(kind): [root] for kind in members}, self._tries)
        drafts = search.placed(members, overlay)
        self.drafting.composers.allot(among=1)
        if drafts is None:
            self._is_certain = self._is_certain and search.is_complete
            return None
        for draft in drafts:
            overlay = draft.upon(overlay)
        return _HostWithMembers(overlay, tuple(drafts))


def _steps(mix: Mix) -> Iterator[tuple[int, Mix]]:
    """Yield the kinds of members one by one, each with the mix that it completes.

    >>> list(_steps((2, 1)))
    [(0, (1, 0)), (0, (2, 0)), (1, (2, 1))]
    """
    for kind, number in enumerate(mix):
        for reached in range(1, number + 1):
            yield kind, (*mix[:kind], reached, *(0,) * (len(mix) - kind - 1))


STEPS_OF_A_FABRIC = 50_000
"""The budget of the search in memory, in hosts looked at."""

EVERYWHERE = "everywhere"
"""The single place of a gang that may go anywhere."""

Free = Mapping[int, Sequence[float] | None]
"""By root, what a tree has left of some classes, or an upper bound; None if unknown."""


def placed_by_rules(drafting: Drafting, members: Sequence[ClaimMember], rules: GangRules) -> Sequence[Draft]:
    """Return a place for each member of a gang; NoCandidate if there are no such places."""
    if rules.together is None and rules.separate_level is not None:
        placement = one_by_one(drafting, members, separating=located(drafting.tx, rules.separate_level))
        if placement.stuck is None:
            return placement.drafts
    kinds = {drafting.composer(member): member for member in reversed(members)}
    search = _FabricSearch(drafting, members, rules, [*kinds], HostRoom(drafting, [*kinds.values()]))
    drafts = search.drafts()
    if drafts is None:
        raise search.refusal()
    return drafts


def located(tx: Transaction, level: FabricLevel) -> Located:
    """Return the place of each host on a level."""
    members = hosts_in(tx, {*chain.from_iterable(level.places.values())})
    return Located(level, names_of_hosts(level.places, members))


@dataclass
class _FabricSearch:
    drafting: Drafting
    members: Sequence[ClaimMember]
    rules: GangRules
    kinds: Sequence[ProposalComposer]
    hosts: HostRoom
    _budget: Budget = field(default_factory=lambda: Budget(STEPS_OF_A_FABRIC))

    @cached_property
    def _classes(self) -> Sequence[str]:
        return sorted({name for kind in self.kinds for name in kind.requested})

    @cached_property
    def _together(self) -> Located | None:
        """The places in which members lie together; None if they may lie anywhere."""
        together = self.rules.together
        # A preference for few hosts holds anywhere, so it needs no places.
        if together is None or (together.level.is_host and not together.required):
            return None
        return located(self.drafting.tx, together.level)

    @cached_property
    def _separating(self) -> Located | None:
        """The places in which members lie apart; None if they need not."""
        return located(self.drafting.tx, self.rules.separate_level) if self.rules.separate_level else None

    def drafts(self) -> Sequence[Draft] | None:
        """Return a place for each member, or None."""
        return self._drafts_on(self._sites(self.hosts.questions[0].left_in_trees(self._classes)))

    def _drafts_on(self, sites: Sequence[Site]) -> list[Draft] | None:
        self._by_place: dict[Hashable, list[Site]] = defaultdict(list)
        for site in sites:
            self._by_place[site.place].append(site)
        amounts = [[kind.requested.get(name, 0) for name in self._classes] for kind in self.kinds]
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
        dealt: list[Draft] = []
        drafts = iter(self.hosts.drafts)
        for group in groups:
            waiting: dict[ProposalComposer, list[ClaimMember]] = defaultdict(list)
            for member in reversed(group):
                waiting[self.drafting.composer(member)].append(member)
            for _ in group:
                draft = next(drafts)
                member = waiting[self.drafting.composer(draft.member)].pop()
                consumer = replace(member.consumer, allocations=draft.consumer.allocations)
                dealt.append(replace(draft, member=member, consumer=consumer))
        return dealt

    def _mix(self, members: Sequence[ClaimMember]) -> Mix:
        counts = Counter(map(self.drafting.composer, members))
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

    def refusal(self) -> NoCandidate:
        """Return the refusal that explains why there are no places."""
        drafting, number, is_one_kind = self.drafting, len(self.members), len(self.kinds) == 1
        complete = self.hosts.complete and not self._budget.was_hit
        roomiest = self._fabric.roomiest(budget=self._budget) if is_one_kind and self._by_place else None
        # By place, the most members that it holds.
        held = self._fabric.upper_bounds(0) if is_one_kind else None
        for member in self.hosts.members:
            places = drafting.places_of(member, drafting.overlay, members=1)
            if drafting.best(member, places, drafting.overlay) is None:
                return refusal(drafting, GangPlan(stuck=member), None, number=number)
        uuid, lacking = self.members[0].uuid, shortage(drafting.tx, self.members, drafting.overlay)
        if lacking is not None:
            return refusal_of_gang(number, lacking, complete=True, member=uuid)
        sentence = " ".join(filter(None, (self._together_in_words(held, roomiest), self._separate_in_words(held))))
        return refusal_of_gang(number, sentence, complete=complete, member=uuid)

    def _together_in_words(self, held: Mapping[Hashable, int] | None, roomiest: tuple[Hashable, int] | None) -> str:
        if (together := self.rules.together) is None:
            return ""
        name, size = together.level.name, together.group_size
        if not self._by_place and not together.level.is_host:
            return f"No host that could serve them is in a {name}: planner.yaml names {name}s under aggregates."
        if size is not None:
            rule = f"{size} of them are to be in each of {len(self.members) // size} {name}s"
            if held is None:
                return f"{rule}."
            with_room = sum([number >= size for number in held.values()])
            return f"{rule}, and no more than {with_room} have room for that many."
        sentence = f"No {name} has room for all of them" if together.required else ""
        if not sentence or roomiest is None:
            return sentence and f"{sentence}."
        place, number = roomiest
        if together.level.is_host and isinstance(place, int):
            place = named_providers(self.drafting.tx, [place])[place].name
        return f"{sentence}: {name} {place} has room for {number}."

    def _separate_in_words(self, held: Mapping[Hashable, int] | None) -> str:
        if (level := self.rules.separate_level) is None:
            return ""
        rule = f"They are to be {'on' if level.is_host else 'in'} different {level.name}s"
        if self.rules.together is None and held is not None:
            return f"{rule}, and no more than {sum(held.values())} have room."
        return f"{rule}."
