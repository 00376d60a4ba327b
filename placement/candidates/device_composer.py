"""Composes a planner request of groups in one tree: from providers and rules to the device allocator and back."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import NamedTuple

from placement.allocators.devices import THE_DEVICE, Allocation, Device, Group, Host, Joint, Request
from placement.allocators.devices import Within as InOnePlace
from placement.allocators.devices_fit import misfit
from placement.allocators.group_tree import Capacity, natural_key
from placement.candidates.device_memo import DeviceMemo
from placement.candidates.locks import Locks
from placement.candidates.proposals import Proposal, Proposals, touched_places
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


Rank = tuple[int, ...]
Choice = list[list[str]]
Heads = tuple[tuple[frozenset[str], int], ...]
"""For each same_subtree (its groups) the provider that is to be the ancestor of the others."""


class _Part(NamedTuple):
    """Something the device allocator gives devices to: a granular group, or one class of the unsuffixed group.

    Groups that want the same of a provider each of their own are one part, with ``further`` names.
    """

    slot: Slot
    group: PlannerGroup
    every: int | None
    exclusive: tuple[str, ...]
    further: tuple[str, ...] = ()

    def served(self, providers: Sequence[int]) -> list[tuple[str, int]]:
        """Return (group, provider) for the providers that were chosen."""
        if not self.further:
            return [(self.slot.suffix, provider) for provider in providers]
        return list(zip(sorted((self.slot.suffix, *self.further), key=natural_key), providers, strict=True))


class DeviceComposer:
    """Composes one request in many trees.

    Args:
        request: the request.
        plan: its plan; for each group that wants everything there is a further kind of all healthy providers.
        levels: the levels.
        locks: level -> lock class.
    """

    def __init__(self, request: PlannerRequest, plan: Plan, levels: Levels, locks: Mapping[str, str]) -> None:
        self._request = request
        self._plan = plan
        self._levels = levels
        self._locks = Locks(levels.names, locks)
        self._memo = DeviceMemo(most=request.per_tree)
        self._parts = self._without_twins(self._all_parts())

    def is_hopeless(self, tree: Tree) -> bool:
        """Tell whether a tree has too few providers for some group, as far as that is known without its details."""
        return any([len(tree.options[part.slot.kind]) < part.group.count for part in self._parts])

    def proposals(self, tree: Tree, details: PlannerTree) -> Proposals:
        """Return the best ways to serve the request in a tree."""
        composition = _Composition(self._request, self._plan, tree=tree, details=details)
        options = self._locks.usable([composition.options(part) for part in self._parts], details)
        counts = [composition.count(part) for part in self._parts]
        if not all(counts):
            return Proposals()
        found: list[tuple[Rank, Choice]] = []
        complete = True
        for heads in composition.heads(self._parts, options):
            if self._memo.is_exhausted:
                return Proposals(complete=False)
            result, names = self._memo.allocate(*self._problem(composition, options, counts, heads))
            complete = complete and result.complete
            found += [(one.objective.rank, self._choice(one, names)) for one in result.allocations]
        found.sort(key=lambda one: one[0])
        ids = {name: id_ for id_, name in details.names.items()}
        chosen = [[[ids[name] for name in row] for row in rows] for _rank, rows in found[: self._request.per_tree]]
        return Proposals([self._proposal(details, rows) for rows in chosen], complete)

    def _choice(self, allocation: Allocation, names: Sequence[str]) -> Choice:
        """Return the names of the providers that serve each part."""
        rows = [allocation.devices[str(index)] for index in range(len(self._parts))]
        return [[names[int(number)] for number in row] for row in rows]

    def _all_parts(self) -> Iterator[_Part]:
        groups = {one.suffix: one for one in self._request.groups}
        every = {kind.group.suffix: index for index, kind in enumerate(self._plan.kinds) if kind.regardless}
        for slot in self._plan.slots:
            rules = [rule for rule in self._request.exclusive if slot.suffix in rule.groups]
            exclusive = tuple(dict.fromkeys([self._levels.named(rule.level) for rule in rules]))
            yield _Part(slot, groups[slot.suffix], every.get(slot.suffix), exclusive)

    def _without_twins(self, parts: Iterable[_Part]) -> list[_Part]:
        """Return the parts with those as one that may change places: isolated groups that no rule tells apart.

        Eight groups of a device each would be 2^8 counts of devices, one group of eight is nine.
        """
        request = self._request
        ruled = {suffix for rule in request.affinity for suffix in (rule.primary, *rule.secondaries)}
        ruled.update(*[rule.groups for rule in request.within], *[rule.groups for rule in request.exclusive])
        ruled.update(*request.same_subtree)
        found: dict[object, _Part] = {}
        for part in parts:
            group = part.group
            plain = request.isolate and part.slot.is_granular and part.slot.suffix not in ruled and group.device is None
            is_twin = plain and group.count == 1 and not group.everything
            key = part.slot.kind if is_twin else part.slot
            if key in found:
                first = found[key]
                wanted = replace(first.group, count=first.group.count + 1)
                found[key] = first._replace(group=wanted, further=(*first.further, part.slot.suffix))
            else:
                found[key] = part
        return list(found.values())

    def _problem(
        self,
        composition: "_Composition",
        options: Sequence[Sequence[int]],
        counts: Sequence[int],
        heads: Heads,
    ) -> tuple[Host, Request]:
        """Return what the device allocator is asked, with the heads of all subtrees given."""
        allowed = [composition.below(part, row, heads) for part, row in zip(self._parts, options, strict=True)]
        groups = [
            composition.group(index, part, row, (counts[index], heads))
            for index, (part, row) in enumerate(zip(self._parts, allowed, strict=True))
        ]
        host = composition.host({provider for row in allowed for provider in row}, self._levels.names)
        conditions = len(self._plan.trait_sets) + len(heads)
        return host, Request(groups=tuple(groups), joint=self._joint(), within=self._within(), conditions=conditions)

    def _labels(self, suffixes: Collection[str]) -> tuple[str, ...]:
        return tuple([str(index) for index, part in enumerate(self._parts) if part.slot.suffix in suffixes])

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

    def _within(self) -> tuple[InOnePlace, ...]:
        rules = self._request.within
        return tuple(
            [
                InOnePlace(
                    groups=self._labels(rule.groups), level=self._levels.named(rule.level), required=rule.required
                )
                for rule in rules
            ]
        )

    def _place(self, details: PlannerTree, part: _Part, provider: int, *, level: str) -> int | None:
        """Return what has to be held for a provider to be alone at a level."""
        if level == THE_DEVICE:
            return details.parents.get(provider) if part.group.device is not None else provider
        return details.positions[provider][self._levels.names.index(level)]

    def _proposal(self, details: PlannerTree, chosen: Sequence[Sequence[int]]) -> Proposal:
        amounts: dict[int, dict[str, int]] = defaultdict(dict)
        mappings: dict[str, list[int]] = defaultdict(list)
        for part, providers in zip(self._parts, chosen, strict=True):
            for suffix, provider in part.served(providers):
                for name, amount in part.slot.resources:
                    amounts[provider][name] = amounts[provider].get(name, 0) + amount
                if provider not in mappings[suffix]:
                    mappings[suffix].append(provider)
        alone = [
            (self._place(details, part, provider, level=level), level)
            for part, providers in zip(self._parts, chosen, strict=True)
            for provider in providers
            for level in part.exclusive
        ]
        locks = self._locks.taken(details, list(amounts), alone, amounts)
        served = [provider for providers in chosen for provider in providers]
        positions = [details.positions[provider] for provider in served]
        return Proposal(
            root=details.root,
            amounts={provider: dict(of_provider) for provider, of_provider in amounts.items()},
            mappings={suffix: tuple(providers) for suffix, providers in mappings.items()},
            touched=touched_places(positions, len(self._levels.names)),
            locks=tuple(locks),
        )


class _Composition:
    """One request in one tree."""

    def __init__(self, request: PlannerRequest, plan: Plan, *, tree: Tree, details: PlannerTree) -> None:
        self._request = request
        self._plan = plan
        self._tree = tree
        self._details = details

    def options(self, part: _Part) -> list[int]:
        """Return the providers that can serve a part: of virtual functions one provider of each device."""
        providers = self._tree.options[part.slot.kind]
        if part.group.device is None:
            return providers
        matching = [provider for provider in providers if self._has_right_device(part.group, provider)]
        if THE_DEVICE in part.exclusive:
            in_use = self._details.in_use()
            matching = [provider for provider in matching if self._device(provider) not in in_use]
        best: dict[int | None, int] = {}
        for provider in sorted(matching, key=lambda provider: self._rank(part.slot, provider)):
            best.setdefault(self._device(provider), provider)
        return list(best.values())

    def _device(self, provider: int) -> int | None:
        return self._details.parents.get(provider)

    def _has_right_device(self, group: PlannerGroup, provider: int) -> bool:
        assert group.device is not None
        device = self._device(provider)
        traits = self._details.traits.get(device, frozenset()) if device is not None else frozenset()
        wanted = group.device.required
        return not traits & group.device.forbidden and all([any_of & traits for any_of in wanted])

    def _rank(self, slot: Slot, provider: int) -> tuple[int, object]:
        return self._misfit(slot, provider), natural_key(self._details.names[provider])

    def _misfit(self, slot: Slot, provider: int) -> int:
        stocks = self._details.stocks.get(provider, {})
        cells = {
            name: Capacity(stocks[name].capacity, stocks[name].used) for name, _ in slot.resources if name in stocks
        }
        return misfit(cells, dict(slot.resources))

    def count(self, part: _Part) -> int:
        """Return how many providers a part wants; 0 if it wants all and there is none."""
        if part.every is None:
            return part.group.count
        own = [provider for provider in self._tree.options[part.every] if provider not in self._tree.sharing]
        if part.group.device is not None:
            devices = [p for p in own if self._has_right_device(part.group, p)]
            return len({self._device(provider) for provider in devices})
        return len(own)

    def heads(self, parts: Sequence[_Part], options: Sequence[Sequence[int]]) -> Iterator[Heads]:
        """Yield every choice of a provider for each same_subtree that is to be the ancestor of the others."""
        possible = []
        for suffixes in self._request.same_subtree:
            rows = [row for part, row in zip(parts, options, strict=True) if part.slot.suffix in suffixes]
            above = [frozenset[int]().union(*[ancestry(p, self._details.parents) for p in row]) for row in rows]
            common = frozenset.intersection(*above) & {provider for row in rows for provider in row}
            possible.append([(suffixes, head) for head in sorted(common)])
        yield from product(*possible)

    def below(self, part: _Part, row: Sequence[int], heads: Heads) -> list[int]:
        """Return the options of a part that are below the heads of its subtrees."""
        over = [head for suffixes, head in heads if part.slot.suffix in suffixes]
        if not over:
            return list(row)
        return [p for p in row if all([head in ancestry(p, self._details.parents) for head in over])]

    def group(
        self,
        index: int,
        part: _Part,
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
            meets={names[provider]: self._meets(part.slot, provider, heads) for provider in row},
        )

    def _meets(self, slot: Slot, provider: int, heads: Heads) -> int:
        mask = 0 if slot.is_granular else self._tree.met.get(provider, 0)
        for place, (suffixes, head) in enumerate(heads):
            if slot.suffix in suffixes and provider == head:
                mask |= 1 << (len(self._plan.trait_sets) + place)
        return mask

    def host(self, providers: Collection[int], levels: tuple[str, ...]) -> Host:
        """Return the providers as devices."""
        names = self._details.names
        devices = []
        for provider in providers:
            room = {
                name: self._tree.room[provider, name]
                for name in self._plan.contended
                if (provider, name) in self._tree.room
            }
            path = tuple([None if place is None else names[place] for place in self._details.positions[provider]])
            devices.append(Device(names[provider], path, room))
        in_use = self._details.in_use() if self._request.exclusive else set()
        return Host(levels, tuple(devices), frozenset([names[provider] for provider in in_use if provider in names]))
