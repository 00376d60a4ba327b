"""The objective, packed into one integer that can be added and compared as a whole.

In descending weight: for each level, outermost first, the unmet wishes about it and the places of it that are touched;
the devices taken; the free devices in touched places (the fewer, the more places stay whole); the misfit of the
devices; and the natural order of their names. The last has a bit for each option, which is subtracted when the option
is chosen, so that the integer also records the choice.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from placement.allocators.devices.request import DeviceOption, Host, Request

_FIELD = 24
"""Bits of a field: sums stay below 16 million."""


@dataclass(frozen=True, slots=True)
class DeviceObjective:
    """The quality of an allocation: smaller is better, compared lexicographically.

    Args:
        missed, touched: for each level, outermost first: unmet wishes, and places touched, at least 1.
        devices: the devices taken, counted once for each group they serve.
        free: for each level, the devices that could have been taken in the touched places.
        misfit: the sum of the devices' misfits.
    """

    missed: tuple[int, ...]
    touched: tuple[int, ...]
    devices: int
    free: tuple[int, ...]
    misfit: int

    @property
    def rank(self) -> tuple[int, ...]:
        """The sort key, the most important component first."""
        by_level = [number for pair in zip(self.missed, self.touched, strict=True) for number in pair]
        return (*by_level, self.devices, *self.free, self.misfit)


class Costs:
    """The layout of costs. Touching places of the last ``uncounted`` levels costs nothing."""

    def __init__(self, levels: int, options: int, *, uncounted: int = 0) -> None:
        levels -= uncounted
        self._levels = levels
        self._options = options
        self._choices = (1 << options) - 1
        fields = 3 * levels + 2
        units = [1 << (options + _FIELD * (fields - 1 - place)) for place in range(fields)]
        nothing = [0] * uncounted
        self.missed = units[0 : 2 * levels : 2] + nothing
        self.touched = units[1 : 2 * levels : 2] + nothing
        self.device = units[2 * levels]
        self.free = units[2 * levels + 1 : 3 * levels + 1] + nothing
        self.misfit = units[3 * levels + 1]

    def choice(self, option: int) -> int:
        """Return the cost that records that an option was chosen; it favours earlier options."""
        return -(1 << (self._options - 1 - option))

    def chosen(self, cost: int) -> list[int]:
        """Decode the options recorded in a cost, ascending."""
        bits, numbers = -cost & self._choices, []
        while bits:
            numbers.append(self._options - bits.bit_length())
            bits -= 1 << bits.bit_length() - 1
        return numbers

    def of_whole(self, cost: int) -> int:
        """Return the cost of a complete way: touching no place of a level counts like touching one."""
        touched = self.objective(cost).touched
        return cost + sum([unit for unit, number in zip(self.touched, touched, strict=False) if not number])

    def objective(self, cost: int) -> DeviceObjective:
        """Unpack the objective from a cost."""
        sums, levels = -(-cost >> self._options), self._levels
        shifts = range(_FIELD * (3 * levels + 1), -1, -_FIELD)
        fields = tuple([sums >> shift & ((1 << _FIELD) - 1) for shift in shifts])
        by_level = fields[: 2 * levels]
        return DeviceObjective(
            missed=by_level[::2],
            touched=by_level[1::2],
            devices=fields[2 * levels],
            free=fields[2 * levels + 1 : -1],
            misfit=fields[-1],
        )


def own_costs(host: Host, request: Request, options: Sequence[DeviceOption], costs: Costs) -> list[int]:
    """Return the part of each option's cost that does not depend on what else is taken.

    That is the device, its misfit, the choice, and the wishes missed because it is in no place.
    """
    missed = [[*_missed_in_no_place(host, request, group.label, costs)] for group in request.groups]
    misfits = [group.options for group in request.groups]
    own = []
    for number, group, device, _turn in options:
        absent = sum([cost for level, cost in missed[group] if device.path[level] is None])
        own.append(costs.device + misfits[group][device.name] * costs.misfit + costs.choice(number) + absent)
    return own


def _missed_in_no_place(host: Host, request: Request, label: str, costs: Costs) -> Iterator[tuple[int, int]]:
    """Yield levels that wishes are about, each with the cost of being in no place of it."""
    stand_for = {group.label: group.stands_for for group in request.groups}
    wishes = [(rule.level, int(label in rule.groups)) for rule in request.within]
    for rule in request.joint:
        # A primary lacks each secondary, and vice versa.
        lacked = sum([stand_for[secondary] for secondary in rule.secondaries]) if label == rule.primary else 0
        wishes.append((rule.level, lacked or int(label in rule.secondaries)))
    for name, number in wishes:
        level = host.levels.index(name)
        if number:
            yield level, number * costs.missed[level]
