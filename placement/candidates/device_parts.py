"""One planner request in one tree: which providers can serve its parts, as the device allocator wants to know it."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

from placement.allocators.devices import THE_DEVICE, Device, Group, Host
from placement.allocators.devices.fit import misfit
from placement.allocators.group.tree import Capacity
from placement.domain.planner_request import PlannerGroup, PlannerRequest
from placement.domain.planner_tree import PlannerTree, ancestry
from placement.domain.search_plan import Plan, Slot
from placement.domain.tree import Tree


@dataclass(frozen=True, slots=True)
class Levels:
    """The levels of a request, outermost first: those of the planner file, then traits that the request names itself.

    ``traits`` has the trait of each; ``names`` what a request calls it.
    """

    names: tuple[str, ...]
    traits: tuple[str, ...]

    def named(self, level: str) -> str:
        """Return the name of a level that may be written as its trait."""
        return self.names[self.traits.index(level)] if level in self.traits else level


Heads = tuple[tuple[frozenset[str], int], ...]
"""For each same_subtree (its groups) the provider that is to be the ancestor of the others."""


class Part(NamedTuple):
    """Something the device allocator gives devices to: a granular group, or one class of the unsuffixed group."""

    slot: Slot
    group: PlannerGroup
    every: int | None
    exclusive: tuple[str, ...]


def device_of(details: PlannerTree, functions: int) -> int:
    """Return the device that virtual functions are of: their parent."""
    parent = details.parents.get(functions)
    return functions if parent is None else parent


class TreeParts:
    """One request in one tree."""

    def __init__(self, request: PlannerRequest, plan: Plan, *, tree: Tree, details: PlannerTree) -> None:
        self._request = request
        self._plan = plan
        self._tree = tree
        self._details = details

    def options(self, part: Part) -> list[int]:
        """Return the providers that can serve a part; what wants all does not count those of other trees."""
        providers = self._tree.options[part.slot.kind]
        if part.every is not None:
            providers = self._details.own(providers)
        if part.group.device is None:
            return providers
        matching = [provider for provider in providers if self._has_right_device(part.group, provider)]
        if THE_DEVICE in part.exclusive:
            in_use = self._details.in_use()
            matching = [provider for provider in matching if self._device(provider) not in in_use]
        return matching

    def _device(self, provider: int) -> int:
        return device_of(self._details, provider)

    def _has_right_device(self, group: PlannerGroup, provider: int) -> bool:
        assert group.device is not None
        traits = self._details.traits.get(self._device(provider), frozenset())
        wanted = group.device.required
        return not traits & group.device.forbidden and all([any_of & traits for any_of in wanted])

    def _misfit(self, slot: Slot, provider: int) -> int:
        stocks = self._details.stocks.get(provider, {})
        cells = {
            name: Capacity(stocks[name].capacity, stocks[name].used) for name, _ in slot.resources if name in stocks
        }
        return misfit(cells, dict(slot.resources))

    def count(self, part: Part) -> int:
        """Return how many providers a part wants; 0 if it wants all and there is none."""
        if part.every is None:
            return part.group.count
        own = self._details.own(self._tree.options[part.every])
        if part.group.device is not None:
            devices = [p for p in own if self._has_right_device(part.group, p)]
            return len({self._device(provider) for provider in devices})
        return len(own)

    def heads(self, parts: Sequence[Part], options: Sequence[Sequence[int]]) -> Iterator[Heads]:
        """Yield every choice of a provider for each same_subtree that is to be the ancestor of the others."""
        possible = []
        for suffixes in self._request.same_subtree:
            rows = [row for part, row in zip(parts, options, strict=True) if part.slot.suffix in suffixes]
            above = [frozenset[int]().union(*[ancestry(p, self._details.parents) for p in row]) for row in rows]
            common = frozenset.intersection(*above) & {provider for row in rows for provider in row}
            possible.append([(suffixes, head) for head in sorted(common)])
        yield from product(*possible)

    def below(self, part: Part, row: Sequence[int], heads: Heads) -> list[int]:
        """Return the options of a part that are below the heads of its subtrees."""
        over = [head for suffixes, head in heads if part.slot.suffix in suffixes]
        if not over:
            return list(row)
        return [p for p in row if all([head in ancestry(p, self._details.parents) for head in over])]

    def group(
        self,
        index: int,
        part: Part,
        row: Sequence[int],
        wanted: tuple[int, Heads],
    ) -> Group:
        """Return a part as the device allocator wants it. ``wanted`` are how many, and the heads of subtrees."""
        count, heads = wanted
        names = self._details.names
        contended = {name: amount for name, amount in part.slot.resources if name in self._plan.contended}
        levels = part.exclusive
        if part.group.device is not None:
            levels = tuple([level for level in levels if level != THE_DEVICE])
        return Group(
            label=str(index),
            options={names[provider]: self._misfit(part.slot, provider) for provider in row},
            count=count,
            per_subtree=part.group.per_subtree,
            amounts=contended,
            apart=self._request.isolate and part.slot.is_granular,
            exclusive=levels,
            by_card=part.group.device is not None,
            meets={names[provider]: self._meets(part.slot, provider, heads) for provider in row},
        )

    def _meets(self, slot: Slot, provider: int, heads: Heads) -> int:
        mask = 0 if slot.is_granular else self._tree.met.get(provider, 0)
        for place, (suffixes, head) in enumerate(heads):
            if slot.suffix in suffixes and provider == head:
                mask |= 1 << (len(self._plan.trait_sets) + place)
        return mask

    def host(self, providers: Collection[int], functions: Collection[int], levels: tuple[str, ...]) -> Host:
        """Return the providers as devices; some of them are virtual functions of another."""
        names = self._details.names
        devices = []
        for provider in providers:
            room = {
                name: self._tree.room[provider, name]
                for name in self._plan.contended
                if (provider, name) in self._tree.room
            }
            path = tuple([None if place is None else names[place] for place in self._details.positions[provider]])
            card = names.get(self._device(provider), "") if provider in functions else ""
            devices.append(Device(names[provider], path, room, card))
        in_use = self._details.in_use() if self._request.exclusive else set()
        return Host(levels, tuple(devices), frozenset([names[provider] for provider in in_use if provider in names]))
