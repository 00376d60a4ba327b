"""What the devices of a table must have served, because the devices outside cannot make up for it."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from placement.allocators.devices.counters import Counters
from placement.allocators.devices.request import Group
from placement.allocators.devices.wholes import Whole

MOST_WHOLES = 4
"""So many sets of groups are told apart by whether they are served; each may double what a state is merged with."""


class Debts(NamedTuple):
    """What a state must have reached to be of use.

    Args:
        floor: least values of all counters, as ``Counters.reaches`` wants them; 0 if any will do.
        settled: the bits of the counters that must be final, as nothing outside adds to them.
        final: their final values.
        wholes: further groups that are served completely or not at all.
    """

    floor: int = 0
    settled: int = 0
    final: int = 0
    wholes: tuple[Whole, ...] = ()

    @property
    def decisive(self) -> int:
        """The bits of all counters of which something is known."""
        return self.settled | sum([whole.mask for whole in self.wholes])

    def complements(self, state: int) -> Sequence[int]:
        """Return what another state must have of the decisive counters so that both together are of use."""
        found = [self.final - (state & self.settled)]
        for mask, full in self.wholes:
            part = state & mask
            found = [one + more for one in found for more in ((full - part,) if part else (0, full))]
        return found


NO_DEBTS: Final = Debts()


def debts_of(
    groups: Sequence[Group], spare: Sequence[int], counters: Counters, wholes: tuple[Whole, ...] = ()
) -> Debts:
    """Return what some devices owe.

    Args:
        groups: the groups of the request; their counters come first.
        spare: by group, the options outside beyond what the group wants; negative if there are too few.
        counters: the layout of states.
        wholes: groups that these devices serve completely or not at all.

    Outside, there is one device for the first group, and none for the second:

    >>> from placement.allocators.devices.counters import Counter
    >>> counters = Counters([Counter(2, 2), Counter(3, 3)])
    >>> groups = [Group(label="gpu", options={}, count=2), Group(label="nic", options={}, count=3)]
    >>> debts = debts_of(groups, [-1, -3], counters)
    >>> gpu, nic = counters.units
    >>> [counters.reaches(state, debts.floor) for state in (3 * nic, gpu + 2 * nic, gpu + 3 * nic)]
    [False, False, True]
    >>> debts.complements(gpu + nic) == [2 * nic]
    True
    """
    if min(spare) >= 0:
        return Debts(wholes=wholes[:MOST_WHOLES]) if wholes else NO_DEBTS
    settled = [
        index
        for index, (group, more) in enumerate(zip(groups, spare, strict=True))
        if more == -group.count and not group.per_subtree
    ]
    final = sum([groups[index].count * counters.units[index] for index in settled])
    mask = counters.mask(settled)
    for whole in wholes:
        if whole.mask & mask:
            mask, final = mask | whole.mask, final | whole.full
    others = tuple([whole for whole in wholes if not whole.mask & mask][:MOST_WHOLES])
    return Debts(counters.floor([-number for number in spare]), mask, final, others)
