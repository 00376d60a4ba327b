"""The part of an option's cost that does not depend on what else is taken."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import attrgetter

from placement.allocators.devices.costs import Costs
from placement.allocators.devices.options import DeviceOption, numbering_of
from placement.allocators.devices.request import Group, Host, Joint, Request


class OwnCosts:
    """The own costs of the options of one request on one host.

    Args:
        host: the host.
        request: the request.
        options: all options, by number.
    """

    def __init__(self, host: Host, request: Request, options: Sequence[DeviceOption]) -> None:
        self._host = host
        self._request = request
        self._stand_for = {group.label: group.stands_for for group in request.groups}
        self.numbering = numbering_of(host, request)
        self.packing = Costs(len(host.levels), self.numbering.size, uncounted=host.uncounted)
        self.of: dict[int, int] = {}
        """Option number -> own cost."""
        for index, of_group in groupby(options, key=attrgetter("group")):
            self.of |= self._of_group(request.groups[index], of_group)

    def without_choice(self, option: DeviceOption) -> int:
        """Return the own cost of an option but for the record that it was chosen."""
        return self.of[option.number] - self.packing.choice(option.number)

    def _of_group(self, group: Group, options: Iterable[DeviceOption]) -> dict[int, int]:
        """Return what options cost: the device, its misfit, the record of the choice, and wishes missed in no place."""
        packing, misfits, missed = self.packing, group.options, self._missed_in_no_place(group.label)
        device, unit, choice = packing.device, packing.misfit, packing.choice
        own = {}
        for number, _group, of, _turn in options:
            own[number] = device + misfits[of.name] * unit + choice(number)
            for level, cost in missed:
                if of.path[level] is None:
                    own[number] += cost
        return own

    def _missed_in_no_place(self, label: str) -> list[tuple[int, int]]:
        """Return the levels that wishes are about, each with the cost of being in no place of it."""
        wishes = [0] * len(self._host.levels)
        for joint in self._request.joint:
            wishes[self._host.levels.index(joint.level)] += self._absent_around(joint, label)
        for within in self._request.within:
            wishes[self._host.levels.index(within.level)] += label in within.groups
        missed = self.packing.missed
        return [(level, number * missed[level]) for level, number in enumerate(wishes) if number]

    def _absent_around(self, joint: Joint, label: str) -> int:
        """Return how many wishes being in no place misses: a primary lacks each secondary, and vice versa."""
        if label == joint.primary:
            return sum([self._stand_for[one] for one in joint.secondaries])
        return 1 if label in joint.secondaries else 0
