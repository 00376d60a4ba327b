"""The definition of a planner candidate, by brute force.

It is independent of how candidates are computed. What planner requests have in common with queries is in
``definition_of_candidates``.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import combinations, product
from math import prod

from placement.candidates.explain.explanation import Condition
from placement.domain.planner_request import THE_DEVICE, PlannerGroup, PlannerRequest
from tests.definition_of_candidates import Definition, Placed, Slot
from tests.small_clouds import Cloud

MAX_WAYS = 20_000

Plan = tuple[frozenset[tuple[int, str, int]], frozenset[tuple[str, int]]]
"""A candidate as seen from outside: (provider, class, amount), and (suffix, provider)."""

Rank = tuple[int, ...]


class TooMany(Exception):
    """There are too many ways to try them all."""


class PlanDefinition:
    """What a planner request demands of a tree, directly from docs/reference/planner-requests.md.

    Args:
        request: the request.
        cloud: the cloud.
        levels: name -> trait, the outermost first.
        locks: level -> the class of its lock.
        without: a condition on single providers or roots to omit.
    """

    def __init__(
        self,
        request: PlannerRequest,
        cloud: Cloud,
        *,
        levels: Mapping[str, str],
        locks: Mapping[str, str],
        without: Condition | None = None,
    ) -> None:
        self.request, self.cloud, self.locks = request, cloud, locks
        self.plain = Definition(replace(request.plain, same_subtree=request.same_subtree), cloud, without)
        own = {level: level for level in request.levels() if level not in {*levels, *levels.values()}}
        self.levels = {**levels, **own}
        self.groups = {one.suffix: one for one in request.groups}
        self.in_use = {
            above
            for node in cloud.values()
            if any(stock.used for stock in node.inventories.values())
            for above in self.plain.ancestry(node.id)
        }

    def best(self, root: int) -> dict[Plan, Rank]:
        """Return the best candidates of a tree, all equally good.

        Raises:
            TooMany: there are too many ways.
        """
        ranks: dict[Plan, Rank] = {}
        for placed in self.allowed(root):
            plan, rank = self._plan(placed), self._rank(placed)
            ranks[plan] = min(rank, ranks.get(plan, rank))
        best = min(ranks.values(), default=())
        return {plan: rank for plan, rank in ranks.items() if rank == best}

    def allowed(self, root: int) -> Iterator[Placed]:
        """Yield the candidates of a tree: the providers of each slot."""
        for placed in self._ways(root):
            if self._is_allowed(root, placed):
                yield placed

    def taken(self, placed: Placed) -> frozenset[tuple[int, str, int]]:
        """Return what a candidate takes as (provider, class, amount)."""
        return self._plan(placed)[0]

    def held(self, placed: Placed) -> frozenset[int]:
        """Return the places that a candidate holds exclusively."""
        found = [
            self._alone(one, provider, rule.level)
            for slot, provider in placed
            for one in [self.groups[slot.suffix]]
            for rule in self._rules_alone(one)
        ]
        return frozenset([place for place in found if place is not None])

    def _ways(self, root: int) -> Iterator[Placed]:
        if not self.plain.root_is_right(root):
            return
        sets = [[[(slot, p) for p in way] for way in self._sets(slot, root)] for slot in self.plain.slots]
        if prod(map(len, sets)) > MAX_WAYS:
            raise TooMany
        for way in product(*sets):
            yield [one for row in way for one in row]

    def _sets(self, slot: Slot, root: int) -> Iterator[tuple[int, ...]]:
        """Yield the sets of providers that can serve a slot."""
        one = self.groups[slot.suffix]
        options = [p for p in self.plain.options(slot, root) if self._is_right(one, p)]
        options = [p for p in options if self._is_free(one, p) and self._is_placed(one, p)]
        if one.everything:
            healthy = {self._device(one, p) for p in self._healthy(slot, root) if self._is_right(one, p)}
            options = [p for p in options if self._device(one, p) in healthy]
            sizes = range(len(healthy), len(healthy) + 1) if healthy else range(0)
        else:
            sizes = range(one.count, (len(options) if one.per_subtree else one.count) + 1)
        for size in sizes:
            for way in combinations(options, size):
                if len({self._device(one, p) for p in way}) == size:
                    yield way

    def _healthy(self, slot: Slot, root: int) -> list[int]:
        """Return the providers that would serve a slot if nothing were allocated and there were no unit rules."""
        unused = {
            id_: replace(
                node,
                inventories={
                    name: replace(stock, used=0, min_unit=1, max_unit=10**6, step_size=1, total=10**6)
                    for name, stock in node.inventories.items()
                    if stock.total > stock.reserved
                },
            )
            for id_, node in self.cloud.items()
        }
        return [
            p
            for p in Definition(self.plain.request, unused, self.plain.without).options(slot, root)
            if self.cloud[p].root == root
        ]

    def _device(self, one: PlannerGroup, provider: int) -> int:
        parent = self.cloud[provider].parent
        return provider if one.device is None or parent is None else parent

    def _is_right(self, one: PlannerGroup, provider: int) -> bool:
        traits = self.cloud[self._device(one, provider)].traits
        return one.device is None or all(any_of & traits for any_of in one.device.required)

    def _place(self, provider: int, level: str) -> int | None:
        trait = self.levels.get(level, level)
        return next((p for p in self.plain.ancestry(provider) if trait in self.cloud[p].traits), None)

    def _is_free(self, one: PlannerGroup, provider: int) -> bool:
        """Return whether no place around a provider is held, and none that must be free is in use."""
        locks = [self.cloud[place].inventories[name] for place, name in self._locks_around(provider)]
        if any(lock.used >= lock.total for lock in locks):
            return False
        wanted = [self._alone(one, provider, rule.level) for rule in self._rules_alone(one)]
        return None not in wanted and self.in_use.isdisjoint(wanted)

    def _rules_alone(self, one: PlannerGroup):
        return [rule for rule in self.request.exclusive if one.suffix in rule.groups]

    def _alone(self, one: PlannerGroup, provider: int, level: str) -> int | None:
        return self._device(one, provider) if level == THE_DEVICE else self._place(provider, level)

    def _is_placed(self, one: PlannerGroup, provider: int) -> bool:
        rules = [(rule.level, (rule.primary, *rule.secondaries)) for rule in self.request.affinity if rule.required]
        rules += [(rule.level, rule.groups) for rule in self.request.within if rule.required]
        return all(self._place(provider, level) is not None for level, groups in rules if one.suffix in groups)

    def _is_allowed(self, root: int, placed: Placed) -> bool:
        return self._is_joint(placed) and self.plain.is_candidate(root, placed)

    def _is_joint(self, placed: Placed) -> bool:
        for rule in self.request.affinity:
            if rule.required:
                primaries = self._places(placed, [rule.primary], rule.level).keys()
                if any(self._places(placed, [other], rule.level).keys() != primaries for other in rule.secondaries):
                    return False
        within = [rule for rule in self.request.within if rule.required]
        return all(len(self._places(placed, rule.groups, rule.level)) == 1 for rule in within)

    def _places(self, placed: Placed, groups, level: str) -> Counter[int | None]:
        return Counter(self._place(p, level) for slot, p in placed if slot.suffix in groups)

    def _rank(self, placed: Placed) -> Rank:
        numbers = []
        for level in self.levels:
            here = {self._place(p, level) for slot, p in placed if slot.resources} - {None}
            numbers += [self._unmet(placed, level), max(1, len(here))]
        return (*numbers, len(placed))

    def _unmet(self, placed: Placed, level: str) -> int:
        """Return how many preferences about places of a level are not met."""
        same = {level, self.levels[level]}
        unmet = 0
        for rule in self.request.affinity:
            if rule.level in same and not rule.required:
                primaries = self._places(placed, [rule.primary], level)
                for other in rule.secondaries:
                    there = self._places(placed, [other], level)
                    unmet += _apart(primaries, there) + _apart(there, primaries)
        for rule in self.request.within:
            if rule.level in same and not rule.required:
                places = self._places(placed, rule.groups, level)
                unmet += len(places.keys() - {None}) + places[None]
        return unmet

    def _plan(self, placed: Placed) -> Plan:
        taken: dict[int, Counter[str]] = defaultdict(Counter)
        for slot, provider in placed:
            if slot.resources:
                taken[provider].update(dict(slot.resources))
        for provider, name, amount in [*self._shared_locks(taken), *self._held_locks(placed)]:
            taken[provider][name] = amount
        amounts = {(provider, name, amount) for provider, of in taken.items() for name, amount in of.items()}
        return frozenset(amounts), frozenset((slot.suffix, provider) for slot, provider in placed)

    def _locks_around(self, provider: int) -> Iterator[tuple[int, str]]:
        """Yield (place, class) for the locks of a provider's places, of itself, and of the device of a function."""
        for level, name in self.locks.items():
            places = [provider, self.cloud[provider].parent] if level == THE_DEVICE else [self._place(provider, level)]
            yield from [(p, name) for p in places if p is not None and name in self.cloud[p].inventories]

    def _shared_locks(self, taken) -> list[tuple[int, str, int]]:
        return [(place, name, 1) for provider in taken for place, name in self._locks_around(provider)]

    def _held_locks(self, placed: Placed) -> list[tuple[int, str, int]]:
        names = {**self.locks, **{self.levels.get(level, level): name for level, name in self.locks.items()}}
        held = []
        for slot, provider in placed:
            one = self.groups[slot.suffix]
            for rule in self._rules_alone(one):
                place, name = self._alone(one, provider, rule.level), names.get(rule.level)
                if place is not None and name in self.cloud[place].inventories:
                    held.append((place, name, self.cloud[place].inventories[name].total))
        return held


def _apart(ours: Counter[int | None], theirs: Counter[int | None]) -> int:
    """Return how many providers are not next to any of the others."""
    return sum(number for place, number in ours.items() if place is None or place not in theirs)
