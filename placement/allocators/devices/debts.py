"""What the devices of a table must have served, because the devices outside cannot make up for it."""

from collections.abc import Sequence
from math import inf
from typing import Final, NamedTuple

from placement.allocators.devices.counters import Counters
from placement.allocators.devices.request import Group
from placement.allocators.devices.wholes import Whole

MAX_WHOLES = 4
"""The most sets of groups to tell apart by whether they are served: each may double what a state is merged with."""


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


class Creditors:
    """The groups of a request, to which devices owe what no others can serve.

    Args:
        groups: the groups.
        counters: the layout of states; the groups' counters come first.

    Outside, there is one device for the first group, and none for the second:

    >>> from placement.allocators.devices.counters import Counter
    >>> counters = Counters([Counter(2, 2), Counter(3, 3)])
    >>> groups = [Group(label="gpu", options={}, count=2), Group(label="nic", options={}, count=3)]
    >>> debts = Creditors(groups, counters).debts([-1, -3])
    >>> gpu, nic = counters.units
    >>> [counters.reaches(state, debts.floor) for state in (3 * nic, gpu + 2 * nic, gpu + 3 * nic)]
    [False, False, True]
    >>> debts.complements(gpu + nic) == [2 * nic]
    True
    """

    def __init__(self, groups: Sequence[Group], counters: Counters) -> None:
        self._guard = counters.guard
        self._rows = [
            (unit, counters.mask([index]), -group.count if not group.per_subtree else -inf)
            for index, (group, unit) in enumerate(zip(groups, counters.units, strict=False))
        ]

    def debts(self, spare: Sequence[int], wholes: tuple[Whole, ...] = ()) -> Debts:
        """Return what some devices owe.

        Args:
            spare: by group, the options outside beyond what the group wants; negative if there are too few.
            wholes: groups that these devices serve completely or not at all.
        """
        if min(spare) >= 0:
            return Debts(wholes=wholes[:MAX_WHOLES]) if wholes else NO_DEBTS
        floor, settled, final = self._guard, 0, 0
        for (unit, mask, none_outside), more in zip(self._rows, spare, strict=True):
            if more < 0:
                floor += more * unit
                if more == none_outside:
                    settled, final = settled | mask, final - more * unit
        for whole in wholes:
            if whole.mask & settled:
                settled, final = settled | whole.mask, final | whole.full
        others = tuple([whole for whole in wholes if not whole.mask & settled][:MAX_WHOLES])
        return Debts(floor, settled, final, others)
