"""What the devices of a table must have served, because the devices outside cannot make up for it."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from placement.allocators.devices.counters import Counters
from placement.allocators.devices.request import Group


class Debts(NamedTuple):
    """What a state must have reached to be of use.

    Args:
        floor: least values of all counters, as ``Counters.reaches`` wants them; 0 if any will do.
        settled: the bits of the counters that must be final, as nothing outside adds to them.
        final: their final values.
    """

    floor: int
    settled: int
    final: int

    def complement(self, state: int) -> int:
        """Return what a state lacks of the settled counters, which is what another state must have to complete it."""
        return self.final - (state & self.settled)


NO_DEBTS: Final = Debts(0, 0, 0)


def debts_of(groups: Sequence[Group], spare: Sequence[int], counters: Counters) -> Debts:
    """Return what some devices owe.

    Args:
        groups: the groups of the request; their counters come first.
        spare: by group, the options outside beyond what the group wants; negative if there are too few.
        counters: the layout of states.

    Outside, there is one device for the first group, and none for the second:

    >>> from placement.allocators.devices.counters import Counter
    >>> counters = Counters([Counter(2, 2), Counter(3, 3)])
    >>> groups = [Group(label="gpu", options={}, count=2), Group(label="nic", options={}, count=3)]
    >>> debts = debts_of(groups, [-1, -3], counters)
    >>> gpu, nic = counters.units
    >>> [counters.reaches(state, debts.floor) for state in (3 * nic, gpu + 2 * nic, gpu + 3 * nic)]
    [False, False, True]
    >>> debts.complement(gpu + nic) == 2 * nic
    True
    """
    if min(spare) >= 0:
        return NO_DEBTS
    settled = [
        index
        for index, (group, more) in enumerate(zip(groups, spare, strict=True))
        if more == -group.count and not group.per_subtree
    ]
    final = sum([groups[index].count * counters.units[index] for index in settled])
    return Debts(counters.floor([-number for number in spare]), counters.mask(settled), final)
