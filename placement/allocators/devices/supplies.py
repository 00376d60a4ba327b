"""Upper bounds on what a set of places has of everything that groups need, computed by one addition."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from math import inf
from typing import NamedTuple

from placement.allocators.devices.options import DeviceOption
from placement.allocators.devices.request import Device, Group, Request

EVERYWHERE = -1
"""The region of all places."""

_FIELD = 64
"""Bits of a field: no sum reaches the topmost one unless there is more than enough."""


class PlacedOption(NamedTuple):
    """An option with its place as a bit; 0 if it is available whatever places are touched."""

    place: int
    option: DeviceOption


class Supplies:
    """What the places of one host can supply to some groups of a request, judged by single devices.

    It is never an underestimate.

    Args:
        request: the request.
        groups: the indices of the groups.
        options: the devices that may serve them.
    """

    def __init__(self, request: Request, groups: Iterable[int], options: Iterable[PlacedOption]) -> None:
        self._groups = {index: request.groups[index] for index in groups}
        self._options: dict[int, list[PlacedOption]] = defaultdict(list)
        for one in options:
            self._options[one.option.group].append(one)
        self._of: dict[int, int] = defaultdict(int)
        self._floor = self._guard = 0
        for number, (wanted, there) in enumerate(self._wants()):
            unit = 1 << _FIELD * number
            self._guard |= unit << _FIELD - 1
            self._floor += ((1 << _FIELD - 1) - wanted) * unit
            for place, some in there:
                self._of[place] += int(min(some, wanted)) * unit
        self._floor += self._of.pop(0, 0)

    def suffice(self, region: int) -> bool:
        """Tell whether a region, together with what is in no place, may have enough."""
        sums = [some for place, some in self._of.items() if place & region]
        return (self._floor + sum(sums)) & self._guard == self._guard

    def _wants(self) -> Iterator[tuple[int, Iterable[tuple[int, float]]]]:
        """Yield for each need how much is wanted, and pairs (place, how much a device there has of it)."""
        asking: dict[str, list[int]] = defaultdict(list)
        for index, group in self._groups.items():
            yield group.count, self._devices_for(index, group)
            for name in group.amounts if group.count else ():
                asking[name].append(index)
        for name, indices in asking.items():
            yield from self._portions(name, indices)
        apart = [index for index, group in self._groups.items() if group.apart]
        if len(apart) > 1:
            yield self._number(apart), [(place, 1) for place, _device in self._devices(apart)]

    def _devices_for(self, index: int, group: Group) -> list[tuple[int, float]]:
        if not group.by_card:
            return [(one.place, 1) for one in self._options[index]]
        of_cards = Counter([(one.place, one.option.device.whole) for one in self._options[index]])
        return [(place, min(number, group.stands_for)) for (place, _card), number in of_cards.items()]

    def _portions(self, name: str, indices: Sequence[int]) -> Iterator[tuple[int, list[tuple[int, float]]]]:
        """Yield the total need for a class, and for each amount the number of portions that are at least as large."""
        amounts = {index: self._groups[index].amounts[name] for index in indices}
        wanted = sum([self._groups[index].count * amount for index, amount in amounts.items()])
        yield wanted, self._rooms(name, indices)
        for amount in {*amounts.values()} - {0}:
            no_less = [index for index in indices if amounts[index] >= amount]
            if len(no_less) > 1:
                number = self._number(no_less)
                yield number, [(place, min(room, number) // 1) for place, room in self._rooms(name, no_less, amount)]

    def _rooms(self, name: str, indices: Sequence[int], amount: int = 1) -> list[tuple[int, float]]:
        """Return the portions of an amount that each eligible device has room for, with its place."""
        return [(place, device.room.get(name, inf) / amount) for place, device in self._devices(indices)]

    def _devices(self, indices: Sequence[int]) -> Iterable[tuple[int, Device]]:
        """Return the devices that groups may have, each with its place.

        A device is in no place for a group that takes nothing of it; then it is available whatever places are touched.
        """
        found: dict[str, tuple[int, Device]] = {}
        for index in indices:
            for place, option in self._options[index]:
                known = found.get(option.device.name)
                found[option.device.name] = (place if known is None else min(place, known[0]), option.device)
        return found.values()

    def _number(self, indices: Sequence[int]) -> int:
        return sum([self._groups[index].count for index in indices])
