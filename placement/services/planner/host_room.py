"""Find out which members of a gang a host can hold together, by planning them in it one after the other.

If one finds nothing beside the others, all ways to place them are tried, within limits.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from placement.allocators import Budget
from placement.allocators.fabric.search import Mix, Posting
from placement.candidates.planner.planner_search import PlannerSearch
from placement.candidates.planner.planner_trees import HostSketch, read_off
from placement.candidates.planner.question import PlannerQuestion
from placement.domain.overlay import Overlay
from placement.services.planner.gang import PLACES_OF_A_GANG, ClaimMember, Draft, Drafting, GangSearch, draft_of

if TYPE_CHECKING:
    from placement.candidates.compose.slots import CanonicalForm


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
    _filled_hosts: "dict[CanonicalForm, dict[Mix, _HostWithMembers | None]]" = field(default_factory=dict)
    _models: "dict[CanonicalForm, HostSketch]" = field(default_factory=dict)
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
        """Transfer drafts from the first host of a form to another one."""
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
        search = GangSearch(self.drafting, {self.drafting.prepared(kind): [root] for kind in members}, self._tries)
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
