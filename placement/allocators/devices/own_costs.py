"""The part of an option's cost that does not depend on what else is taken."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter

from placement.allocators.devices.costs import Costs
from placement.allocators.devices.options import DeviceOption, Numbering, numbering_of
from placement.allocators.devices.request import Group, Host, Joint, Request

GroupMisfits = Mapping[str, Mapping[str, int]]
"""Label of a group -> device -> misfit, as in ``Group.options``."""


class OwnCosts:
    """The own costs of the options of one request on one host.

    Args:
        numbering: how the options are numbered.
        packing: the layout of costs.
        of: option number -> own cost.
        misfits: how badly the devices fit.
    """

    def __init__(self, numbering: Numbering, packing: Costs, of: Mapping[int, int], *, misfits: GroupMisfits) -> None:
        self.numbering = numbering
        self.packing = packing
        self.of = of
        self.misfits = misfits

    def without_choice(self, option: DeviceOption) -> int:
        """Return the own cost of an option but for the record that it was chosen."""
        return self.of[option.number] - self.packing.choice(option.number)


class FixedCosts:
    """The own costs of the options of one request on one host, but for how well the devices fit.

    Args:
        host: the host.
        request: the request.
        options: all options, by number.
    """

    def __init__(self, host: Host, request: Request, options: Sequence[DeviceOption]) -> None:
        self._host = host
        self._request = request
        self._stand_for = {group.label: group.stands_for for group in request.groups}
        self._numbering = numbering_of(host, request)
        self.packing = Costs(len(host.levels), self._numbering.size, uncounted=host.uncounted)
        self._of = {
            request.groups[index].label: [*self._of_group(request.groups[index], some)]
            for index, some in groupby(options, key=attrgetter("group"))
        }

    def with_misfits(self, misfits: GroupMisfits) -> OwnCosts:
        """Return the own costs if the devices fit this badly."""
        unit = self.packing.misfit
        own: dict[int, int] = {}
        for label, of_group in self._of.items():
            of_device = misfits[label]
            own.update([(number, cost + of_device[name] * unit) for number, name, cost in of_group])
        return OwnCosts(self._numbering, self.packing, own, misfits=misfits)

    def _of_group(self, group: Group, options: Iterable[DeviceOption]) -> Iterator[tuple[int, str, int]]:
        """Yield options with their devices and costs: for the device, the choice, and wishes missed in no place."""
        device, choice, missed = self.packing.device, self.packing.choice, self._missed_in_no_place(group.label)
        for number, _group, of, _turn in options:
            yield number, of.name, device + choice(number) + sum([c for level, c in missed if of.path[level] is None])

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
