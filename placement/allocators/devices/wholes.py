"""Groups that have to be in one place, so that the devices of a place serve them completely or not at all."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from typing import NamedTuple

from placement.allocators.devices.options import DeviceOption


class Whole(NamedTuple):
    """Groups of which some devices serve all or none.

    Args:
        mask: the bits of their counters.
        full: the state that serves all of them, and nothing else.
    """

    mask: int
    full: int


def joined(wholes: Iterable[Whole]) -> tuple[Whole, ...]:
    """Return what holds for groups if all of these do: those that have groups in common are one.

    >>> joined([Whole(0b000011, 0b000001), Whole(0b110000, 0b010000), Whole(0b001111, 0b000101)])
    (Whole(mask=48, full=16), Whole(mask=15, full=5))
    """
    found: list[Whole] = []
    for whole in wholes:
        touched = [whole, *[one for one in found if one.mask & whole.mask]]
        found = [one for one in found if not one.mask & whole.mask]
        found.append(reduce(lambda one, other: Whole(one.mask | other.mask, one.full | other.full), touched))
    return tuple(found)


def taken_together(
    options: Sequence[DeviceOption], wholes: Iterable[Whole], units: Sequence[int]
) -> Iterator[Sequence[DeviceOption]]:
    """Yield the options of one device in sets of which it takes all or none, but for those that it cannot take.

    Args:
        options: the options.
        wholes: groups that the device serves completely or not at all.
        units: by group, what serving it once adds to a state.
    """
    if not wholes:
        yield from [[option] for option in options]
        return
    sets: dict[int, list[DeviceOption]] = defaultdict(list)
    for option in options:
        sets[next((one.full for one in wholes if one.mask & units[option.group]), 0)].append(option)
    yield from [[option] for option in sets.pop(0, ())]
    yield from [some for full, some in sets.items() if sum([units[option.group] for option in some]) == full]
