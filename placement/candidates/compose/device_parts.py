"""Puts one planner request in one tree into the words of the device allocator: devices, places and groups.

The allocator knows no trees. What lies below the head of a same_subtree is a place to it, of a level made up for that.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from placement.allocators import natural_key, natural_order
from placement.allocators.devices.request import THE_DEVICE, Device, Group, Host, InOnePlace, Joint, Request
from placement.candidates.compose.slots import UsefulRoom, useful_room
from placement.candidates.fragmentation import DeviceJudge
from placement.domain.planner_request import PlannerGroup, PlannerRequest
from placement.domain.search_plan import Plan, Slot
from placement.domain.tree import NO_STOCKS, Levels, PlannerTree, ProviderStocks, Tree, upwards

Heads = tuple[tuple[frozenset[str], frozenset[int]], ...]
"""For each same_subtree the suffixes of its groups, and heads to choose one from, none of them above another.

A head is a provider of one of its groups that has those of all its groups at or below it.
"""

PartProviders = Sequence[Sequence[int]]
"""For each part the providers that can serve it."""


class Part(NamedTuple):
    """What the device allocator knows as a group: a granular group, or one class of the unsuffixed group.

    If it wants all providers, ``every`` is the demand whose options these are. It is ``exclusive`` at some levels.
    """

    slot: Slot
    group: PlannerGroup
    every: int | None
    exclusive: tuple[str, ...]


class DeviceTerms(NamedTuple):
    """What one request wants in every tree; in its rules, parts are labelled by their index."""

    request: PlannerRequest
    plan: Plan
    levels: Levels
    parts: Sequence[Part]
    joint: tuple[Joint, ...]
    within: tuple[InOnePlace, ...]
    useful: UsefulRoom


def device_terms(request: PlannerRequest, plan: Plan, levels: Levels) -> DeviceTerms:
    """Return what a request wants, given its plan and its levels."""
    groups, parts = {group.suffix: group for group in request.groups}, list[Part]()
    every = {demand.group.suffix: index for index, demand in enumerate(plan.demands) if demand.ignores_usage}
    for slot in sorted(plan.slots, key=lambda slot: natural_key(slot.suffix)):
        rules = [rule for rule in request.exclusive if slot.suffix in rule.groups]
        exclusive = tuple(dict.fromkeys([levels.named(rule.level) for rule in rules]))
        group = groups[slot.suffix]
        parts.append(Part(slot, group, every[slot.suffix] if group.everything else None, exclusive))

    def labels(suffixes: Collection[str]) -> tuple[str, ...]:
        return tuple([str(index) for index, part in enumerate(parts) if part.slot.suffix in suffixes])

    joint = []
    for rule in request.affinity:
        primary, secondaries, level = labels([rule.primary])[0], labels(rule.secondaries), levels.named(rule.level)
        joint.append(Joint(primary=primary, secondaries=secondaries, level=level, required=rule.required))
    within = [
        InOnePlace(groups=labels(rule.groups), level=levels.named(rule.level), required=rule.required)
        for rule in request.within
    ]
    # Everything in a same_subtree lies below its head.
    within += [
        InOnePlace(groups=labels(suffixes), level=LEVEL_OF_TIE.format(number), condition=len(plan.trait_sets) + number)
        for number, suffixes in enumerate(request.same_subtree)
    ]
    return DeviceTerms(request, plan, levels, parts, tuple(joint), tuple(within), useful_room(plan))


LEVEL_OF_TIE = "same_subtree/{}"
"""The name of a level whose places are the heads of a same_subtree, by its number. No real level has such a name."""


def device_of(details: PlannerTree, functions: int) -> int:
    """Return the device that a provider of virtual functions belongs to: its parent."""
    parent = details.parents.get(functions)
    return functions if parent is None else parent


WORST_MISFIT = 1000
"""The misfit of a device of which all would be left."""


@lru_cache(maxsize=4096)
def misfit_of(resources: tuple[tuple[str, int], ...], stocks: ProviderStocks) -> int:
    """Return how badly a provider with these stocks fits: how much of what is asked for would be left, in 1/1000."""
    taken = [(stocks[name], amount) for name, amount in resources if name in stocks and stocks[name].capacity > 0]
    remaining = [WORST_MISFIT * (stock.capacity - stock.used - amount) // stock.capacity for stock, amount in taken]
    return max(0, sum(remaining)) // len(remaining) if remaining else 0


class DeviceProblem(NamedTuple):
    """What the device allocator is asked. Device "0" stands for the first of ``providers``, and so on."""

    host: Host
    request: Request
    providers: Sequence[int]


@dataclass(frozen=True, eq=False)
class TreeParts:
    """One request in one tree; nobody can hold the places ``never_alone`` exclusively, even if nothing is in use."""

    terms: DeviceTerms
    tree: Tree
    details: PlannerTree
    never_alone: AbstractSet[int]
    judge: DeviceJudge | None
    _above: dict[int, frozenset[int]] = field(default_factory=dict, init=False)

    def _ancestry(self, provider: int) -> frozenset[int]:
        if provider not in self._above:
            self._above[provider] = frozenset(upwards(provider, self.details.parents))
        return self._above[provider]

    def options(self, part: Part) -> list[int]:
        """Return the providers that can serve a part; one that wants all wants only those of the tree itself."""
        providers = self.tree.options[part.slot.demand]
        if part.every is not None:
            every = frozenset(self.tree.options[part.every])
            providers = [provider for provider in self.details.own(providers) if provider in every]
        if part.group.device is None:
            return providers
        matching = [provider for provider in providers if self._has_right_device(part.group, provider)]
        if THE_DEVICE in part.exclusive:
            in_use = self.details.in_use() | self.never_alone
            matching = [provider for provider in matching if device_of(self.details, provider) not in in_use]
        return matching

    def _has_right_device(self, group: PlannerGroup, provider: int) -> bool:
        assert group.device is not None
        traits = self.details.traits.get(device_of(self.details, provider), frozenset())
        return not traits & group.device.forbidden and all([any_of & traits for any_of in group.device.required])

    def _count(self, part: Part) -> int:
        """Return how many providers a part wants; 0 if it wants all and there is none."""
        if part.every is None:
            return part.group.count
        own = self.details.own(self.tree.options[part.every])
        if part.group.device is None:
            return len(own)
        right = [provider for provider in own if self._has_right_device(part.group, provider)]
        return len({device_of(self.details, provider) for provider in right})

    def problems(self, options: PartProviders, *, is_ranked: bool) -> Iterator[DeviceProblem]:
        """Yield what to ask the device allocator, with heads for all same_subtrees, in every combination."""
        counts = [self._count(part) for part in self.terms.parts]
        if all(counts):
            for heads, rows in self._heads(options, counts):
                yield self._problem(rows, counts, heads, is_ranked=is_ranked)

    def _heads(
        self, options: PartProviders, counts: Sequence[int], chosen: Heads = ()
    ) -> Iterator[tuple[Heads, PartProviders]]:
        """Yield heads after those chosen, with the options below them; skip what leaves too few for any part."""
        if any([len(row) < count for row, count in zip(options, counts, strict=True)]):
            return
        same_subtree = self.terms.request.same_subtree
        if len(chosen) == len(same_subtree):
            yield chosen, options
            return
        suffixes = same_subtree[len(chosen)]
        is_tied = [part.slot.suffix in suffixes for part in self.terms.parts]
        tied = [(row, count) for row, count, is_in in zip(options, counts, is_tied, strict=True) if is_in]
        for heads in self._by_depth(self._possible_heads(tied)):
            rows = [
                [provider for provider in row if not heads.isdisjoint(self._ancestry(provider))] if is_in else row
                for row, is_in in zip(options, is_tied, strict=True)
            ]
            yield from self._heads(rows, counts, (*chosen, (suffixes, heads)))

    def _possible_heads(self, rows: Sequence[tuple[Sequence[int], int]]) -> list[int]:
        """Return the providers in some rows that have, of each row, as many at or below them as it wants."""
        enough = []
        for row, number_wanted in rows:
            below = Counter([above for provider in row for above in self._ancestry(provider)])
            enough.append({head for head, number in below.items() if number >= number_wanted})
        return sorted(set.intersection(*enough) & {provider for row, _number_wanted in rows for provider in row})

    def _by_depth(self, heads: Collection[int]) -> Iterator[frozenset[int]]:
        """Yield heads in sets of those at the same depth, and in places of the same levels: none is above another."""
        alike: dict[object, list[int]] = defaultdict(list)
        for head in heads:
            places = [(place is None, place == head) for place in self.details.positions[head]]
            alike[len(self._ancestry(head)), tuple(places)].append(head)
        yield from map(frozenset, alike.values())

    def _problem(self, rows: PartProviders, counts: Sequence[int], heads: Heads, *, is_ranked: bool) -> DeviceProblem:
        terms, providers = self.terms, sorted({provider for row in rows for provider in row})
        order = natural_order([self.details.names[provider] for provider in providers])
        numbers = {providers[place]: str(number) for number, place in enumerate(order)}
        groups = [
            self._group(index, row, numbers, count=count, heads=heads, is_ranked=is_ranked)
            for index, (row, count) in enumerate(zip(rows, counts, strict=True))
        ]
        functions = {p for part, row in zip(terms.parts, rows, strict=True) if part.group.device for p in row}
        conditions = len(terms.plan.trait_sets) + len(heads)
        request = Request(groups=tuple(groups), joint=terms.joint, within=terms.within, conditions=conditions)
        return DeviceProblem(self._host(numbers, functions, heads), request, [*numbers])

    def _group(
        self, index: int, row: Sequence[int], numbers: Mapping[int, str], *, count: int, heads: Heads, is_ranked: bool
    ) -> Group:
        """Return a part as a group of the device allocator, with devices named by numbers."""
        part, plan = self.terms.parts[index], self.terms.plan
        # How well they fit decides nothing if all of them are taken, unless other heads leave others to take.
        is_ranked = is_ranked and bool(len(row) > count or heads)
        misfits = self._misfits(part.slot, row, count) if is_ranked else dict.fromkeys(row, 0)
        meeting = row if heads or plan.trait_sets else ()
        has_device = part.group.device is not None
        return Group(
            label=str(index),
            options={numbers[provider]: misfit for provider, misfit in misfits.items()},
            count=count,
            per_subtree=part.group.per_subtree,
            amounts={name: amount for name, amount in part.slot.resources if name in plan.contended},
            is_isolated=self.terms.request.isolate and part.slot.is_granular,
            exclusive=tuple([level for level in part.exclusive if not (has_device and level == THE_DEVICE)]),
            by_card=has_device,
            takes=bool(part.slot.resources),
            meets={numbers[provider]: self._meets(part.slot, provider, heads) for provider in meeting},
        )

    def _misfits(self, slot: Slot, row: Sequence[int], count: int) -> dict[int, int]:
        """Return how badly each provider fits; where devices are judged, how much it would fragment."""
        stocks = self.details.stocks
        misfits = {provider: misfit_of(slot.resources, stocks.get(provider, NO_STOCKS)) for provider in row}
        if self.judge is None:
            return misfits
        free, requested = self.details.free_amounts(), self.terms.request.requested
        return misfits | self.judge.ranks(free, dict(slot.resources), row, count=count, requested=requested)

    def _meets(self, slot: Slot, provider: int, heads: Heads) -> int:
        mask = 0 if slot.is_granular else self.tree.met.get(provider, 0)
        for place, (suffixes, of_set) in enumerate(heads):
            if slot.suffix in suffixes and provider in of_set:
                mask |= 1 << (len(self.terms.plan.trait_sets) + place)
        return mask

    def _host(self, numbers: Mapping[int, str], functions: Iterable[int], heads: Heads) -> Host:
        """Return the providers as devices with places, as met; a level for each same_subtree comes last, uncounted."""
        room, details, terms = self.tree.room, self.details, self.terms
        places: dict[int, str] = {}

        def named(place: int | None) -> str | None:
            return None if place is None else places.setdefault(place, f"place {len(places)}")

        devices = []
        for provider, number in numbers.items():
            rooms = [(name, useful, room.get((provider, name))) for name, useful in terms.useful.items()]
            free = {name: useful[free] for name, useful, free in rooms if free is not None}
            above = [next(iter(of_set & self._ancestry(provider)), None) for _suffixes, of_set in heads]
            path = tuple(map(named, (*details.positions[provider], *above)))
            card = device_of(details, provider) if provider in functions else None
            devices.append(Device(number, path, free, named(card if card in details.names else None) or ""))
        in_use = details.in_use() | self.never_alone if terms.request.exclusive else set()
        # A device may be a place, too.
        held = frozenset([names[provider] for names in (numbers, places) for provider in in_use if provider in names])
        ties = [LEVEL_OF_TIE.format(number) for number in range(len(heads))]
        return Host((*terms.levels.names, *ties), tuple(devices), held, uncounted=len(ties))
