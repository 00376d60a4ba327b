"""All of a search that does not depend on how well devices fit, prepared once for hosts that differ in nothing else.

In a busy cloud hardly two hosts have the same in use, so that their devices fit a request differently. But which of
them may serve which group, how groups compete for them, and which places may be touched at what cost is the same on
many hosts.
"""

from collections import Counter
from collections.abc import Hashable, Sequence
from functools import cached_property
from math import inf
from typing import NamedTuple

from placement.allocators.devices.confined import without_places_too_small
from placement.allocators.devices.options import DeviceOption, options_of
from placement.allocators.devices.own_costs import FixedCosts, GroupMisfits, OwnCosts
from placement.allocators.devices.place_sets import PlaceSets
from placement.allocators.devices.request import THE_DEVICE, Host, Request
from placement.allocators.devices.ties import without_identical_ties
from placement.allocators.devices.twins import shared_out, without_twins


class HostKey(NamedTuple):
    """What tells hosts apart for one request: those of one ``form`` have the same plan.

    Args:
        form: all that a plan depends on, besides what is the same for all hosts of a request.
        misfits: how well the devices of each group fit.
    """

    form: Hashable
    misfits: tuple[tuple[int, ...], ...]


def host_key(host: Host, request: Request) -> HostKey:
    """Return the key of a host."""
    options = [sorted(group.options.items()) for group in request.groups]
    misfits = tuple([tuple([misfit for _name, misfit in row]) for row in options])
    form = (
        tuple([(device.name, device.path, tuple(device.room.items()), device.card) for device in host.devices]),
        host.in_use,
        tuple([(one.count, tuple(sorted(one.meets.items()))) for one in request.groups]),
        tuple([tuple([name for name, _misfit in row]) for row in options]),
        # Groups that the same devices serve equally well are twins, and so are ties of such groups.
        tuple(map(options.index, options)),
    )
    return HostKey(form, misfits)


class DevicePlan:
    """The plan of the search for one request on hosts that differ only in how well their devices fit.

    Args:
        host: one of them.
        request: the request.

    Raises:
        ValueError: the request refers to an unknown group or level, repeats a label, or has a group without devices.
    """

    def __init__(self, host: Host, request: Request) -> None:
        _check(host, request)
        self._labels = [group.label for group in request.groups]
        self.host, counted, self._ties = without_identical_ties(host, request)
        self.request, self._twins = without_twins(self.host, counted)
        """The request without twins. How well devices fit in it is of the host it was made for: see ``own_costs``."""
        self.options = options_of(self.host, self.request)
        self.usable = without_places_too_small(self.host, self.request, self.options)
        """The options that some way can use."""
        self.is_hopeless = _is_hopeless(self.request, self.usable)
        self._costs = FixedCosts(self.host, self.request, self.options)
        self._numbered = {option.number: option for option in self.options}

    @cached_property
    def place_sets(self) -> PlaceSets:
        """The sets of places that may be touched."""
        return PlaceSets(self.host, self.request, self.options, usable=self.usable, packing=self._costs.packing)

    def own_costs(self, misfits: GroupMisfits) -> OwnCosts:
        """Return the options' own costs on a host whose devices fit this badly."""
        return self._costs.with_misfits(misfits)

    def devices(self, numbers: Sequence[int]) -> dict[str, tuple[str, ...]]:
        """Return the devices that each group gets, by label, if these options are chosen."""
        chosen = [self._numbered[number] for number in numbers]
        found: dict[str, tuple[str, ...]] = {}
        for index, family in enumerate(self._twins.values()):
            found |= shared_out(self.host, [option for option in chosen if option.group == index], family)
        for alike in self._ties:
            found |= alike.shared_out(found, self.host)
        return {label: found[label] for label in self._labels}


def _is_hopeless(request: Request, options: Sequence[DeviceOption]) -> bool:
    """Tell whether there are too few devices for a group, or too little of a class for all groups."""
    supply = Counter([option.group for option in options])
    if any([supply[index] < group.count for index, group in enumerate(request.groups)]):
        return True
    wanted: Counter[str] = Counter()
    for group in request.groups:
        wanted.update({name: group.count * amount for name, amount in group.amounts.items()})
    rooms = {option.device.name: option.device.room for option in options}.values()
    return any([amount > sum([room.get(name, inf) for room in rooms]) for name, amount in wanted.items()])


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
