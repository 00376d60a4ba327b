"""Composes a planner request of groups in one tree: from providers and rules to the device allocator and back.

The device allocator decides, once for all trees that pose it the same problem. Before the details of a tree are read,
two questions rule out many: are there enough providers for each group, and have they room for all groups together
(``DeviceRoom``)?
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import inf
from operator import itemgetter
from typing import NamedTuple

from placement.allocators import Budget
from placement.allocators.devices import DeviceAllocations, allocate, host_key
from placement.allocators.devices.request import THE_DEVICE
from placement.candidates.compose.device_parts import DeviceProblem, Part, TreeParts, device_of, device_terms
from placement.candidates.compose.proposals import Proposal, ProposalComposer, Proposals, WantedFree
from placement.candidates.compose.slots import Memo
from placement.candidates.fragmentation import DeviceJudge
from placement.domain.planner_request import PlannerRequest
from placement.domain.search_plan import Plan, plan_for
from placement.domain.tree import Levels, PlannerTree, Tree

MAX_HOSTS = 10_000
"""How many forms of hosts to remember: many, because allocating again costs far more than looking a form up."""


class DeviceComposer(ProposalComposer):
    """Composes one request in many trees.

    ``plan``, by default its own, has a further demand of all healthy providers for each group that wants everything.
    ``locks`` maps levels to lock classes. ``judge`` returns what judges devices, where the profile counts
    fragmentation; it is asked when trees are composed.
    """

    def __init__(
        self,
        request: PlannerRequest,
        levels: Levels,
        *,
        locks: Mapping[str, str],
        plan: Plan | None = None,
        judge: Callable[[], DeviceJudge | None] | None = None,
    ) -> None:
        super().__init__(request, levels, locks=locks)
        self.plan = plan or plan_with_everything(request)
        self._judge = judge
        self._best: Memo[DeviceAllocations] = Memo(MAX_HOSTS)
        self._any: Memo[DeviceAllocations] = Memo(MAX_HOSTS)
        self._terms = device_terms(request, self.plan, levels)
        self._parts = self._terms.parts
        self._least: dict[int, int] = {}
        """For each demand how many different providers it takes at least."""
        for part in self._parts:
            demand, so_far = part.slot.demand, self._least.get(part.slot.demand, 0)
            is_apart = request.isolate and part.slot.is_granular
            self._least[demand] = so_far + part.group.count if is_apart else max(so_far, part.group.count)
        taking = {part.slot.demand for part in self._parts if part.slot.resources}
        self.requested = request.requested
        self.counted = [(demand, least) for demand, least in self._least.items() if least > 1 and demand in taking]
        self.wanted_free = list(dict.fromkeys([self._wanted_free(part) for part in self._parts if part.exclusive]))
        self._room = DeviceRoom(self._parts, isolate=request.isolate)

    def _wanted_free(self, part: Part) -> WantedFree:
        is_device, is_function = THE_DEVICE in part.exclusive, part.group.device is not None
        levels = tuple([self.levels.names.index(level) for level in part.exclusive if level != THE_DEVICE])
        count = 1 if part.every is not None else part.group.count
        return WantedFree(part.slot.demand, count, levels, is_device and not is_function, is_device and is_function)

    def is_hopeless(self, tree: Tree) -> bool:
        """Tell whether a tree has too few providers for some group, as far as that is known without its details."""
        return any([len(tree.options[demand]) < number for demand, number in self._least.items()])

    def lacks_room(self, tree: Tree, *, members: int = 1) -> bool:
        """Tell whether a tree has too little for all groups of so many members, as far as a few sums show."""
        return self._room.is_lacking(tree, members=members)

    def proposals(self, tree: Tree, details: PlannerTree, budget: Budget) -> Proposals:
        """Return the best ways to serve the request in a tree, as far as found before the budget runs out."""
        ways: list[tuple[tuple[int, ...], list[list[int]]]] = []
        complete = True
        for result, providers in self._allocations(tree, details, budget, is_ranked=True):
            complete = complete and result.complete
            for way in result.allocations:
                rows = [way.devices[str(index)] for index in range(len(self._parts))]
                ways.append((way.objective.rank, [[providers[int(number)] for number in row] for row in rows]))
        ways.sort(key=itemgetter(0))
        chosen = [rows for _rank, rows in ways[: self.request.per_tree]]
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
        levels = {level for part in self._parts for level in part.exclusive}
        never_alone = self._locks.never_whole(levels, details) if levels else frozenset[int]()
        judge = self._judge() if self._judge and is_ranked else None
        parts = TreeParts(self._terms, tree, details, never_alone=never_alone, judge=judge)
        options = self._locks.usable([parts.options(part) for part in self._parts], details)
        for problem in parts.problems(options, is_ranked=is_ranked):
            yield self._allocated(problem, budget, is_ranked=is_ranked), problem.providers

    def _allocated(self, problem: DeviceProblem, budget: Budget, *, is_ranked: bool) -> DeviceAllocations:
        """Ask the allocator, only once for hosts that are the same to it; without steps, only what was asked before."""
        memo, ways = (self._best, self.request.per_tree) if is_ranked else (self._any, 1)
        key = host_key(problem.host, problem.request)
        if (allocations := memo.get(key)) is None:
            if budget.is_used_up:
                return DeviceAllocations((), complete=False)
            allocations = allocate(problem.host, problem.request, max_ways=ways, budget=budget)
            memo.remember(key, allocations)
        return allocations

    def _place(self, details: PlannerTree, part: Part, provider: int, *, level: str) -> int | None:
        """Return the place to hold for a provider to be alone at a level: its anchor, or the device itself."""
        if level == THE_DEVICE:
            return provider if part.group.device is None else device_of(details, provider)
        return details.positions[provider][self.levels.names.index(level)]

    def _proposal(self, details: PlannerTree, chosen: Sequence[Sequence[int]]) -> Proposal:
        amounts: dict[int, dict[str, int]] = defaultdict(dict)
        mappings: dict[str, list[int]] = defaultdict(list)
        alone: list[tuple[int | None, str]] = []
        for part, providers in zip(self._parts, chosen, strict=True):
            for provider in providers:
                alone += [(self._place(details, part, provider, level=level), level) for level in part.exclusive]
                for name, amount in part.slot.resources:
                    amounts[provider][name] = amounts[provider].get(name, 0) + amount
                if provider not in mappings[part.slot.suffix]:
                    mappings[part.slot.suffix].append(provider)
        locks = self._locks.taken(details, list(amounts), alone, amounts)
        return Proposal(
            root=details.root,
            amounts={provider: dict(of_provider) for provider, of_provider in amounts.items()},
            mappings={suffix: tuple(providers) for suffix, providers in mappings.items()},
            touched=details.touched(amounts),
            locks=tuple(locks),
        )


def plan_with_everything(request: PlannerRequest) -> Plan:
    """Return the plan of a request of groups, with one more demand for each group that wants all providers."""
    plan = plan_for(request.plain)
    demands = {slot.suffix: plan.demands[slot.demand] for slot in plan.slots}
    groups = [group for group in request.groups if group.everything]
    every = [replace(demands[group.suffix], group=group.group, ignores_usage=True) for group in groups]
    return replace(plan, demands=(*plan.demands, *every))


class _Portions(NamedTuple):
    """What a tree needs: a number of portions of a class, each of them of at least some amount.

    ``providers`` is how many serve them, those of different parts counted separately. By demand, ``loose`` has how many
    of them one provider can be asked for; ``isolated`` the same of isolated groups, of which it serves only one.
    """

    resource_class: str
    amount: int
    number: int
    providers: int
    loose: Mapping[int, int]
    isolated: Mapping[int, int]

    def available(self, tree: Tree, members: int) -> float:
        """Return how many portions the providers of a tree can give that many members at most."""
        numbers: dict[int, int] = {}
        for demand, number in self.isolated.items():
            for provider in tree.options[demand]:
                numbers[provider] = max(numbers.get(provider, 0), number)
        for demand, number in self.loose.items():
            for provider in tree.options[demand]:
                numbers[provider] = numbers.get(provider, 0) + number
        room, name, amount = tree.room, self.resource_class, self.amount
        unit = amount * members
        return sum([min(number * unit, room.get((p, name), inf)) // amount for p, number in numbers.items()])


# Without it, eight members that want a GPU and its switch each are refused by 400 hosts in 800 ms of CPU, not 310.
class DeviceRoom:
    """What the parts of one request need in all; with ``isolate`` no two granular parts may be on one provider."""

    def __init__(self, parts: Sequence[Part], *, isolate: bool) -> None:
        self._isolate = isolate
        names = dict.fromkeys([name for part in parts for name, _amount in part.slot.resources])
        self._every = [portions for name in names for portions in self._portions_of(name, parts)]
        # A provider that has room for all of one member's is an option for it.
        self._of_several = [portions for portions in self._every if portions.providers > 1]

    def is_lacking(self, tree: Tree, *, members: int = 1) -> bool:
        """Tell whether a tree certainly has too little for all parts together, each of them once for each member."""
        needed = self._of_several if members == 1 else self._every
        return any(portions.available(tree, members) < portions.number * members for portions in needed)

    def _portions_of(self, name: str, parts: Sequence[Part]) -> Iterator[_Portions]:
        """Yield the portions needed of a class: for each amount asked for, those of at least it; and the sum of all."""
        asking = [part for part in parts if name in dict(part.slot.resources)]
        amounts = {dict(part.slot.resources)[name] for part in asking}
        for amount in sorted(amounts):
            no_less = [part for part in asking if dict(part.slot.resources)[name] >= amount]
            yield self._together(name, amount, [(part, 1) for part in no_less])
        if len(amounts) > 1:
            yield self._together(name, 1, [(part, dict(part.slot.resources)[name]) for part in asking])

    def _together(self, name: str, amount: int, asking: Sequence[tuple[Part, int]]) -> _Portions:
        """Return the portions that parts need together, given how many each takes of each of its providers."""
        isolated: dict[int, int] = {}
        loose: dict[int, int] = defaultdict(int)
        for part, number in asking:
            demand = part.slot.demand
            if self._isolate and part.slot.is_granular:
                isolated[demand] = max(isolated.get(demand, 0), number)
            else:
                loose[demand] += number
        counts = [1 if part.every is not None else part.group.count for part, _number in asking]
        total = sum([count * number for count, (_part, number) in zip(counts, asking, strict=True)])
        return _Portions(name, amount, number=total, providers=sum(counts), loose=loose, isolated=isolated)
