"""What is searched for: the request on a host without identical groups, the options, and what each of them costs."""

from collections import Counter
from collections.abc import Hashable
from math import inf

from placement.allocators.devices.costs import Costs, own_costs
from placement.allocators.devices.options import options_of
from placement.allocators.devices.request import THE_DEVICE, Host, Request
from placement.allocators.devices.ties import without_identical_ties
from placement.allocators.devices.twins import shared_out, without_twins


def host_key(host: Host, request: Request) -> Hashable:
    """Return all that an allocation depends on, besides what is the same for all hosts of a request."""
    return (
        tuple([(device.name, device.path, tuple(device.room.items()), device.card) for device in host.devices]),
        host.in_use,
        tuple(
            [(group.count, *sorted(group.meets.items()), *sorted(group.options.items())) for group in request.groups]
        ),
    )


class DevicePlan:
    """A request on a host, ready to be searched.

    Args:
        host: the host.
        request: the request.

    Raises:
        ValueError: the request refers to an unknown group or level, repeats a label, or has a group without devices.
    """

    def __init__(self, host: Host, request: Request) -> None:
        _check(host, request)
        self._labels = [group.label for group in request.groups]
        self.host, counted, self._ties = without_identical_ties(host, request)
        self.request, self._twins = without_twins(self.host, counted)
        """The request without twins."""
        self.options = options_of(self.host, self.request)
        self.costs = Costs(len(self.host.levels), len(self.options), uncounted=self.host.uncounted)
        """The layout of costs."""

    @property
    def is_hopeless(self) -> bool:
        """Whether there are too few devices for a group, or too little of a class for all groups."""
        supply = Counter([option.group for option in self.options])
        if any([supply[index] < group.count for index, group in enumerate(self.request.groups)]):
            return True
        wanted: Counter[str] = Counter()
        for group in self.request.groups:
            wanted.update({name: group.count * amount for name, amount in group.amounts.items()})
        rooms = {option.device.name: option.device.room for option in self.options}.values()
        return any([amount > sum([room.get(name, inf) for room in rooms]) for name, amount in wanted.items()])

    def own_costs(self) -> list[int]:
        """Return what each option costs by itself."""
        return own_costs(self.host, self.request, self.options, self.costs)

    def devices(self, cost: int) -> dict[str, tuple[str, ...]]:
        """Return the devices that each group gets, by label, from the cost that records them."""
        chosen = [self.options[number] for number in self.costs.chosen(cost)]
        devices: dict[str, tuple[str, ...]] = {}
        for index, family in enumerate(self._twins.values()):
            devices |= shared_out(self.host, [option for option in chosen if option.group == index], family)
        for identical in self._ties:
            devices |= identical.shared_out(devices, self.host)
        return {label: devices[label] for label in self._labels}


def _check(host: Host, request: Request) -> None:
    labels = [group.label for group in request.groups]
    named = {label for joint in request.joint for label in (joint.primary, *joint.secondaries)}
    named.update(*[within.groups for within in request.within])
    levels = {joint.level for joint in request.joint} | {within.level for within in request.within}
    exclusive = {level for group in request.groups for level in group.exclusive} - {THE_DEVICE}
    if unknown := sorted(named - set(labels)):
        raise ValueError(f"There is no group {unknown[0]!r}.")
    if unknown := sorted((levels | exclusive) - {*host.levels}):
        raise ValueError(f"There is no level {unknown[0]!r}.")
    if len(set(labels)) < len(labels):
        raise ValueError("Two groups have one label.")
    if any([group.count < (0 if group.per_subtree else 1) for group in request.groups]):
        raise ValueError("A group wants no device at all.")
