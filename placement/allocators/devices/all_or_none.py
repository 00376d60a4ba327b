"""Groups that a rule ties to one place, so that the devices of a place serve all of them or none.

If two GPUs and a NIC have to be on one switch, then a switch gives two GPUs and a NIC, or neither. One with a single
GPU taken leads nowhere, so the search never looks at it.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from typing import NamedTuple

from placement.allocators.devices.options import DeviceOption


class AllOrNone(NamedTuple):
    """Groups of which the devices of one place serve all or none.

    Args:
        mask: the bits of their counters.
        full: the state that serves all of them, and nothing else.
    """

    mask: int
    full: int


def joined(all_or_none: Iterable[AllOrNone]) -> tuple[AllOrNone, ...]:
    """Merge those that have groups in common: whoever serves a group of one of them serves all groups of both.

    >>> joined([AllOrNone(0b000011, 0b000001), AllOrNone(0b110000, 0b010000), AllOrNone(0b001111, 0b000101)])
    (AllOrNone(mask=48, full=16), AllOrNone(mask=15, full=5))
    """
    found: list[AllOrNone] = []
    for another in all_or_none:
        touched = [another, *[one for one in found if one.mask & another.mask]]
        found = [one for one in found if not one.mask & another.mask]
        found.append(reduce(lambda one, other: AllOrNone(one.mask | other.mask, one.full | other.full), touched))
    return tuple(found)


def taken_together(
    options: Sequence[DeviceOption], all_or_none: Iterable[AllOrNone], units: Sequence[int]
) -> Iterator[Sequence[DeviceOption]]:
    """Yield the options of one device in sets of which it takes all or none; leave out those that it can never take.

    Args:
        options: the options.
        all_or_none: groups of which the device serves all or none.
        units: by group, what serving it once adds to a state.
    """
    if not all_or_none:
        yield from [[option] for option in options]
        return
    sets: dict[int, list[DeviceOption]] = defaultdict(list)
    for option in options:
        sets[next((one.full for one in all_or_none if one.mask & units[option.group]), 0)].append(option)
    yield from [[option] for option in sets.pop(0, ())]
    yield from [some for full, some in sets.items() if sum([units[option.group] for option in some]) == full]
