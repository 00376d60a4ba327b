"""Puts one planner request in one tree into the words of the device allocator: devices, places and groups.

The allocator knows no trees. What lies below the head of a same_subtree is a place to it, of a level made up for that.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from placement.allocators.devices import THE_DEVICE, Device, Group, Host
from placement.allocators.natural_order import natural_order
from placement.candidates.canonical import UsefulRoom
from placement.candidates.fragmentation import DeviceJudge
from placement.domain.places import Levels, upwards
from placement.domain.planner_request import PlannerGroup, PlannerRequest
from placement.domain.search_plan import Plan, Slot
from placement.domain.tree import NO_STOCKS, PlannerTree, ProviderStocks, Tree

Heads = tuple[tuple[frozenset[str], frozenset[int]], ...]
"""For each same_subtree the suffixes of its groups, and heads to choose one from.

The head of a same_subtree is the provider of one of its groups that has those of all its groups at or below it. None of
the heads to choose from is above another.
"""

PartProviders = Sequence[Sequence[int]]
"""For each part the providers that can serve it."""


class Part(NamedTuple):
    """What the device allocator knows as a group: a granular group, or one class of the unsuffixed group.

    Args:
        slot: what one of its providers serves.
        group: the group of the request.
        every: if it wants all providers, the demand whose options these are; otherwise None.
        exclusive: the levels at which it wants a place to itself, by name.
    """

    slot: Slot
    group: PlannerGroup
    every: int | None
    exclusive: tuple[str, ...]


class DeviceCase(NamedTuple):
    """One question to the device allocator.

    Args:
        counts: how many providers each part wants.
        heads: the heads to choose from.
        numbers: the names that the providers have as devices.
        is_ranked: whether it matters how well providers fit.
    """

    counts: Sequence[int]
    heads: Heads
    numbers: Mapping[int, str]
    is_ranked: bool


def device_of(details: PlannerTree, functions: int) -> int:
    """Return the device that a provider of virtual functions belongs to: its parent."""
    parent = details.parents.get(functions)
    return functions if parent is None else parent


def level_of_tie(number: int) -> str:
    """Return the name of a level whose places are the heads of a same_subtree. No real level has such a name."""
    return f"same_subtree/{number}"


WORST_MISFIT = 1000
"""The misfit of a device of which all would be left."""


class Misfits:
    """How badly providers fit the parts of one request, computed once for all providers with equal stocks."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, ProviderStocks], int] = {}

    def of(self, slot: Slot, stocks: ProviderStocks) -> int:
        """Return how badly a provider with these stocks fits: how much of what is asked for would be left, in 1/1000.

        Only requested classes count, so that whatever else a device has does not blur the order.
        """
        key = slot.demand, stocks
        if key not in self._known:
            asked = [(stocks[name], amount) for name, amount in slot.resources if name in stocks]
            left = [
                WORST_MISFIT * (stock.capacity - stock.used - amount) // stock.capacity
                for stock, amount in asked
                if stock.capacity > 0
            ]
            self._known[key] = max(0, sum(left)) // len(left) if left else 0
        return self._known[key]


class TreeParts:
    """One request in one tree.

    Args:
        tree: the tree, with the options of each demand.
        details: the same tree in detail.
        never_alone: the places that cannot be held exclusively, even if nothing is in use.
        misfits: remembers how badly providers fit.
        useful: how much of the room for a contended class makes a difference.
        judge: judges devices instead, where the profile counts fragmentation.
    """

    def __init__(
        self,
        request: PlannerRequest,
        plan: Plan,
        *,
        tree: Tree,
        details: PlannerTree,
        never_alone: AbstractSet[int],
        misfits: Misfits,
        useful: UsefulRoom,
        judge: DeviceJudge | None = None,
    ) -> None:
        self._never_alone = never_alone
        self._useful = useful
        self._judge = judge
        self._misfits_of = misfits.of
        self._request = request
        self._plan = plan
        self._tree = tree
        self._details = details
        self._ancestries: dict[int, frozenset[int]] = {}

    def options(self, part: Part) -> list[int]:
        """Return the providers that can serve a part; one that wants all wants only those of the tree itself."""
        providers = self._tree.options[part.slot.demand]
        if part.every is not None:
            every = frozenset(self._tree.options[part.every])
            providers = [provider for provider in self._details.own(providers) if provider in every]
        if part.group.device is None:
            return providers
        matching = [provider for provider in providers if self._has_right_device(part.group, provider)]
        if THE_DEVICE in part.exclusive:
            in_use = self._details.in_use() | self._never_alone
            matching = [provider for provider in matching if self._device(provider) not in in_use]
        return matching

    def _device(self, provider: int) -> int:
        return device_of(self._details, provider)

    def _has_right_device(self, group: PlannerGroup, provider: int) -> bool:
        assert group.device is not None
        traits = self._details.traits.get(self._device(provider), frozenset())
        wanted = group.device.required
        return not traits & group.device.forbidden and all([any_of & traits for any_of in wanted])

    def _misfits(self, slot: Slot, row: Sequence[int], count: int) -> dict[int, int]:
        """Return how badly each provider fits; where devices are judged, how much it would fragment."""
        stocks, misfit_of = self._details.stocks, self._misfits_of
        misfits = {provider: misfit_of(slot, stocks.get(provider, NO_STOCKS)) for provider in row}
        if self._judge is None:
            return misfits
        left, resources = self._details.left(), dict(slot.resources)
        return misfits | self._judge.ranks(left, resources, row, count=count, requested=self._request.requested)

    def count(self, part: Part) -> int:
        """Return how many providers a part wants; 0 if it wants all and there is none."""
        if part.every is None:
            return part.group.count
        own = self._details.own(self._tree.options[part.every])
        if part.group.device is not None:
            devices = [p for p in own if self._has_right_device(part.group, p)]
            return len({self._device(provider) for provider in devices})
        return len(own)

    def heads(
        self, parts: Sequence[Part], options: PartProviders, counts: Sequence[int], *, known: Heads = ()
    ) -> Iterator[tuple[Heads, PartProviders]]:
        """Yield heads for all same_subtrees, in every combination, with the options that are below them.

        Combinations that leave too few options for any part are skipped.

        Args:
            parts: the parts of the request.
            options: the providers that can serve each part.
            counts: how many each part wants.
            known: the heads chosen so far, for the first of the same_subtrees.
        """
        if any([len(row) < count for row, count in zip(options, counts, strict=True)]):
            return
        if len(known) == len(self._request.same_subtree):
            yield known, options
            return
        suffixes = self._request.same_subtree[len(known)]
        is_tied = [part.slot.suffix in suffixes for part in parts]
        tied = [(row, count) for row, count, is_in in zip(options, counts, is_tied, strict=True) if is_in]
        for heads in self._apart(self._possible_heads(tied)):
            left = [self._below(heads, row) if is_in else row for row, is_in in zip(options, is_tied, strict=True)]
            yield from self.heads(parts, left, counts, known=(*known, (suffixes, heads)))

    def _possible_heads(self, rows: Sequence[tuple[Sequence[int], int]]) -> list[int]:
        """Return the providers in these rows with enough of each row at or below them.

        ``rows`` has the options of the parts of a same_subtree, and how many of them each wants.
        """
        below = [Counter([above for one in row for above in self.ancestry(one)]) for row, _count in rows]
        enough = [{head for head, found in of.items() if found >= c} for of, (_, c) in zip(below, rows, strict=True)]
        return sorted(set.intersection(*enough) & {provider for row, _count in rows for provider in row})

    def _apart(self, heads: Collection[int]) -> Iterator[frozenset[int]]:
        """Yield heads in sets of those at the same depth, and in places of the same levels: none is above another."""
        alike: dict[object, list[int]] = defaultdict(list)
        for head in heads:
            places = [(place is None, place == head) for place in self._details.positions[head]]
            alike[len(self.ancestry(head)), tuple(places)].append(head)
        yield from map(frozenset, alike.values())

    def _below(self, heads: frozenset[int], row: Sequence[int]) -> list[int]:
        return [provider for provider in row if not heads.isdisjoint(self.ancestry(provider))]

    def ancestry(self, provider: int) -> frozenset[int]:
        """Return a provider and all its ancestors."""
        known = self._ancestries.get(provider)
        if known is None:
            known = self._ancestries[provider] = frozenset(upwards(provider, self._details.parents))
        return known

    def numbers(self, providers: Iterable[int]) -> dict[int, str]:
        """Return numbers for some providers, in the natural order of their names."""
        some = sorted(providers)
        order = natural_order([self._details.names[provider] for provider in some])
        return {some[place]: str(number) for number, place in enumerate(order)}

    def group(self, index: int, part: Part, row: Sequence[int], case: DeviceCase) -> Group:
        """Return a part as a group of the device allocator."""
        count, heads, numbers = case.counts[index], case.heads, case.numbers
        # How well they fit decides nothing if all of them are taken, unless other heads leave others to take.
        is_ranked = case.is_ranked and (len(row) > count or heads)
        misfits = self._misfits(part.slot, row, count) if is_ranked else dict.fromkeys(row, 0)
        contended = {name: amount for name, amount in part.slot.resources if name in self._plan.contended}
        levels = part.exclusive
        if part.group.device is not None:
            levels = tuple([level for level in levels if level != THE_DEVICE])
        meeting = row if heads or self._plan.trait_sets else ()
        return Group(
            label=str(index),
            options={numbers[provider]: misfit for provider, misfit in misfits.items()},
            count=count,
            per_subtree=part.group.per_subtree,
            amounts=contended,
            apart=self._request.isolate and part.slot.is_granular,
            exclusive=levels,
            by_card=part.group.device is not None,
            takes=bool(part.slot.resources),
            meets={numbers[provider]: self._meets(part.slot, provider, heads) for provider in meeting},
        )

    def _meets(self, slot: Slot, provider: int, heads: Heads) -> int:
        mask = 0 if slot.is_granular else self._tree.met.get(provider, 0)
        for place, (suffixes, of_set) in enumerate(heads):
            if slot.suffix in suffixes and provider in of_set:
                mask |= 1 << (len(self._plan.trait_sets) + place)
        return mask

    def host(self, case: DeviceCase, functions: Collection[int], levels: Levels) -> Host:
        """Return the host that the device allocator sees: the providers as devices, each with its places.

        Places are numbered as they are met.

        Args:
            case: the question.
            functions: those of the providers that have virtual functions of a device.
            levels: the levels; a further one for each same_subtree comes last (``level_of_tie``), and costs nothing.
        """
        numbers, heads = case.numbers, case.heads
        room, useful = self._tree.room, self._useful
        positions, known = self._details.positions, self._details.names
        places: dict[int, str] = {}

        def named(place: int | None) -> str | None:
            return None if place is None else places.setdefault(place, f"place {len(places)}")

        devices = []
        for provider, number in numbers.items():
            left = {name: of[room[provider, name]] for name, of in useful.items() if (provider, name) in room}
            path = (*positions[provider], *[self._head_above(provider, of_set) for _, of_set in heads])
            card = self._device(provider) if provider in functions else None
            devices.append(Device(number, tuple(map(named, path)), left, named(card if card in known else None) or ""))
        in_use = self._details.in_use() | self._never_alone if self._request.exclusive else set()
        # A device may be a place, too.
        held = frozenset([called[one] for called in (numbers, places) for one in in_use if one in called])
        ties = [level_of_tie(number) for number in range(len(heads))]
        return Host((*levels.names, *ties), tuple(devices), held, uncounted=len(ties))

    def _head_above(self, provider: int, heads: frozenset[int]) -> int | None:
        return next(iter(heads & self.ancestry(provider)), None)
