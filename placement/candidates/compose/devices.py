"""Composes a planner request of groups in one tree: from providers and rules to the device allocator and back.

The device allocator decides, once for all trees that pose it the same problem. Before the details of a tree are read,
two questions rule out many: are there enough providers for each group, and have they room for all groups together
(``ruled_out``)?
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property
from operator import itemgetter
from typing import NamedTuple

from placement.allocators.budget import Budget
from placement.allocators.devices import (
    THE_DEVICE,
    DeviceAllocation,
    DeviceAllocations,
    Host,
    InOnePlace,
    Joint,
    Request,
    allocate,
    host_key,
)
from placement.allocators.natural_order import natural_key
from placement.candidates.canonical import Memo, useful_room
from placement.candidates.compose.device_parts import (
    DeviceCase,
    Heads,
    Misfits,
    Part,
    PartProviders,
    TreeParts,
    device_of,
    level_of_tie,
)
from placement.candidates.compose.locks import Locks
from placement.candidates.compose.proposals import Proposal, Proposals
from placement.candidates.compose.ruled_out import DeviceRoom, WantedFree, wanted_free
from placement.candidates.fragmentation import DeviceJudge
from placement.domain.places import Levels
from placement.domain.planner_request import PlannerRequest
from placement.domain.search_plan import Plan
from placement.domain.tree import PlannerTree, Tree

ChosenProviders = list[list[int]]
"""For each part the providers that serve it."""


class _DeviceProblem(NamedTuple):
    """What the device allocator is asked. Device "0" stands for the first of ``providers``, and so on."""

    host: Host
    request: Request
    providers: Sequence[int]


MAX_HOSTS = 10_000
"""How many forms of hosts to remember: many, because allocating again costs far more than looking a form up."""


class DeviceComposer:
    """Composes one request in many trees.

    Args:
        plan: its plan; for each group that wants everything there is a further demand of all healthy providers, and
            perhaps for others.
        locks: level -> lock class.
        judge: returns what judges devices, where the profile counts fragmentation; asked when trees are composed.
    """

    def __init__(
        self,
        request: PlannerRequest,
        plan: Plan,
        levels: Levels,
        *,
        locks: Mapping[str, str],
        judge: Callable[[], DeviceJudge | None] | None = None,
    ) -> None:
        self._request = request
        self._judge = judge
        self._plan = plan
        self._levels = levels
        self._locks = Locks(levels.names, locks)
        self._best: Memo[DeviceAllocations] = Memo(MAX_HOSTS)
        self._any: Memo[DeviceAllocations] = Memo(MAX_HOSTS)
        self._parts = list(self._all_parts())
        self._misfits = Misfits()
        self._useful = useful_room(plan)
        self._least = self._least_by_demand()
        self._room = DeviceRoom(self._parts, isolate=request.isolate)

    @property
    def requested(self) -> Mapping[str, int]:
        """How much is asked for of each class."""
        return self._request.requested

    @property
    def counted(self) -> list[tuple[int, int]]:
        """(demand, how many different providers of it) for demands that are wanted more than once."""
        taking = {part.slot.demand for part in self._parts if part.slot.resources}
        return [(demand, number) for demand, number in self._least.items() if number > 1 and demand in taking]

    @property
    def wanted_free(self) -> list[WantedFree]:
        """What has to be free of use, because something wants to be alone there."""
        return list(dict.fromkeys(wanted_free(self._parts, self._levels.names)))

    def is_hopeless(self, tree: Tree) -> bool:
        """Tell whether a tree has too few providers for some group, as far as that is known without its details."""
        return any([len(tree.options[demand]) < number for demand, number in self._least.items()])

    def lacks_room(self, tree: Tree, *, members: int = 1) -> bool:
        """Tell whether a tree has too little for all groups of so many members, as far as a few sums show."""
        return self._room.is_lacking(tree, members=members)

    def proposals(self, tree: Tree, details: PlannerTree, budget: Budget) -> Proposals:
        """Return the best ways to serve the request in a tree, as far as found before the budget runs out."""
        found: list[tuple[tuple[int, ...], ChosenProviders]] = []
        complete = True
        for result, providers in self._allocations(tree, details, budget, is_ranked=True):
            complete = complete and result.complete
            found += [(one.objective.rank, self._choice(one, providers)) for one in result.allocations]
        found.sort(key=itemgetter(0))
        chosen = [rows for _rank, rows in found[: self._request.per_tree]]
        return Proposals([self._proposal(details, rows) for rows in chosen], complete)

    def serves(self, tree: Tree, details: PlannerTree, budget: Budget) -> bool | None:
        """Tell whether there is any way to serve the request in a tree; None if the budget runs out first."""
        complete = True
        for result, _providers in self._allocations(tree, details, budget, is_ranked=False):
            if result.allocations:
                return True
            complete = complete and result.complete
        return False if complete else None

    def _allocations(
        self, tree: Tree, details: PlannerTree, budget: Budget, *, is_ranked: bool
    ) -> Iterator[tuple[DeviceAllocations, Sequence[int]]]:
        """Yield what the device allocator finds in a tree with each choice of heads, and the providers it names."""
        wanted = {level for part in self._parts for level in part.exclusive}
        parts = TreeParts(
            self._request,
            self._plan,
            tree=tree,
            details=details,
            never_alone=self._locks.never_whole(wanted, details) if wanted else frozenset(),
            misfits=self._misfits,
            useful=self._useful,
            judge=self._judge() if self._judge and is_ranked else None,
        )
        options = self._locks.usable([parts.options(part) for part in self._parts], details)
        counts = [parts.count(part) for part in self._parts]
        if all(counts):
            for heads, allowed in parts.heads(self._parts, options, counts):
                problem = self._problem(parts, allowed, counts, heads=heads, is_ranked=is_ranked)
                yield self._allocated(problem, budget, is_ranked=is_ranked), problem.providers

    def _allocated(self, problem: _DeviceProblem, budget: Budget, *, is_ranked: bool) -> DeviceAllocations:
        """Ask the device allocator, only once for all hosts that are the same to it.

        Once no steps are left, only what was asked before is found.
        """
        memo, most = (self._best, self._request.per_tree) if is_ranked else (self._any, 1)
        key = host_key(problem.host, problem.request)
        found = memo.get(key)
        if found is None and budget.is_used_up:
            return DeviceAllocations((), complete=False)
        if found is None:
            found = allocate(problem.host, problem.request, most=most, budget=budget)
            memo.remember(key, found)
        return found

    def _choice(self, allocation: DeviceAllocation, providers: Sequence[int]) -> ChosenProviders:
        rows = [allocation.devices[str(index)] for index in range(len(self._parts))]
        return [[providers[int(number)] for number in row] for row in rows]

    def _all_parts(self) -> Iterator[Part]:
        groups = {one.suffix: one for one in self._request.groups}
        every = {demand.group.suffix: index for index, demand in enumerate(self._plan.demands) if demand.ignores_usage}
        for slot in sorted(self._plan.slots, key=lambda slot: natural_key(slot.suffix)):
            rules = [rule for rule in self._request.exclusive if slot.suffix in rule.groups]
            exclusive = tuple(dict.fromkeys([self._levels.named(rule.level) for rule in rules]))
            group = groups[slot.suffix]
            yield Part(slot, group, every[slot.suffix] if group.everything else None, exclusive)

    def _least_by_demand(self) -> dict[int, int]:
        """Return for each demand how many different providers it takes at least."""
        least: dict[int, int] = {}
        for part in self._parts:
            demand, known = part.slot.demand, least.get(part.slot.demand, 0)
            is_apart = self._request.isolate and part.slot.is_granular
            least[demand] = known + part.group.count if is_apart else max(known, part.group.count)
        return least

    def _problem(
        self,
        composition: TreeParts,
        allowed: PartProviders,
        counts: Sequence[int],
        *,
        heads: Heads,
        is_ranked: bool,
    ) -> _DeviceProblem:
        """Return what the device allocator is asked, with the heads of all same_subtrees given."""
        numbers = composition.numbers({provider for row in allowed for provider in row})
        case = DeviceCase(counts, heads, numbers, is_ranked)
        groups = [
            composition.group(index, part, row, case)
            for index, (part, row) in enumerate(zip(self._parts, allowed, strict=True))
        ]
        functions = {p for part, row in zip(self._parts, allowed, strict=True) if part.group.device for p in row}
        host = composition.host(case, functions, self._levels)
        conditions = len(self._plan.trait_sets) + len(heads)
        request = Request(groups=tuple(groups), joint=self._joint, within=self._within, conditions=conditions)
        return _DeviceProblem(host, request, [*numbers])

    def _labels(self, suffixes: Collection[str]) -> tuple[str, ...]:
        return tuple([str(index) for index, part in enumerate(self._parts) if part.slot.suffix in suffixes])

    @cached_property
    def _joint(self) -> tuple[Joint, ...]:
        rules = self._request.affinity
        return tuple(
            [
                Joint(
                    primary=self._labels([rule.primary])[0],
                    secondaries=self._labels(rule.secondaries),
                    level=self._levels.named(rule.level),
                    required=rule.required,
                )
                for rule in rules
            ]
        )

    @cached_property
    def _within(self) -> tuple[InOnePlace, ...]:
        """Return the rules about one place, same_subtree among them: all below its head."""
        rules = [
            InOnePlace(groups=self._labels(one.groups), level=self._levels.named(one.level), required=one.required)
            for one in self._request.within
        ]
        first = len(self._plan.trait_sets)
        ties = [
            InOnePlace(groups=self._labels(suffixes), level=level_of_tie(number), condition=first + number)
            for number, suffixes in enumerate(self._request.same_subtree)
        ]
        return (*rules, *ties)

    def _place(self, details: PlannerTree, part: Part, provider: int, *, level: str) -> int | None:
        """Return the place to hold for a provider to be alone at a level: its anchor, or the device itself."""
        if level == THE_DEVICE:
            return provider if part.group.device is None else device_of(details, provider)
        return details.positions[provider][self._levels.names.index(level)]

    def _proposal(self, details: PlannerTree, chosen: Sequence[Sequence[int]]) -> Proposal:
        amounts: dict[int, dict[str, int]] = defaultdict(dict)
        mappings: dict[str, list[int]] = defaultdict(list)
        for part, providers in zip(self._parts, chosen, strict=True):
            for provider in providers:
                for name, amount in part.slot.resources:
                    amounts[provider][name] = amounts[provider].get(name, 0) + amount
                if provider not in mappings[part.slot.suffix]:
                    mappings[part.slot.suffix].append(provider)
        alone = [
            (self._place(details, part, provider, level=level), level)
            for part, providers in zip(self._parts, chosen, strict=True)
            for provider in providers
            for level in part.exclusive
        ]
        locks = self._locks.taken(details, list(amounts), alone, amounts)
        touched = details.places.around(details.own(amounts))
        return Proposal(
            root=details.root,
            amounts={provider: dict(of_provider) for provider, of_provider in amounts.items()},
            mappings={suffix: tuple(providers) for suffix, providers in mappings.items()},
            touched=details.places.touched(touched),
            locks=tuple(locks),
        )
