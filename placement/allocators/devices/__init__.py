"""Devices of one host, allocated together: so many GPUs with a NIC on the same PCIe switch, and the like.

After Koordinator's device allocation hints and joint allocation, made exact: an allocation is found whenever there is
one, and it is the best by the numbers of ``DeviceObjective``: fewest NUMA nodes, then fewest switches, then the fullest
places, then the natural order of names. Labels, and the order in which anything is given, do not matter.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

from placement.allocators.budget import Budget
from placement.allocators.devices.attempts import STEPS, WIDTH, Attempts
from placement.allocators.devices.confined import without_places_too_small
from placement.allocators.devices.costs import Costs, DeviceObjective
from placement.allocators.devices.known_searches import KnownSearches
from placement.allocators.devices.options import DeviceOption, options_of
from placement.allocators.devices.request import THE_DEVICE, Device, Group, Host, InOnePlace, Joint, Request
from placement.allocators.devices.tables import Limits
from placement.allocators.devices.ties import LikeTies, without_like_ties
from placement.allocators.devices.twins import Twins, shared_out, without_twins

__all__ = [
    "THE_DEVICE",
    "Device",
    "DeviceAllocation",
    "DeviceAllocations",
    "DeviceObjective",
    "Group",
    "Host",
    "InOnePlace",
    "Joint",
    "KnownSearches",
    "Request",
    "allocate",
]


@dataclass(frozen=True, slots=True)
class DeviceAllocation:
    """The devices that serve each group, by its label, in natural order; and how good that is."""

    devices: Mapping[str, tuple[str, ...]]
    objective: DeviceObjective


@dataclass(frozen=True, slots=True)
class DeviceAllocations:
    """Allocations, the best first.

    ``complete`` is False if the search hit its limit of steps: then there may be better ones, or any at all.
    """

    allocations: tuple[DeviceAllocation, ...]
    complete: bool = True

    @property
    def best(self) -> DeviceAllocation | None:
        """The best one, if there is any."""
        return self.allocations[0] if self.allocations else None


def allocate(
    host: Host,
    request: Request,
    *,
    most: int = 1,
    budget: Budget | None = None,
    width: int = WIDTH,
    any_way: bool = False,
    known: KnownSearches | None = None,
) -> DeviceAllocations:
    """Find the best ways to serve a request on a host.

    Args:
        host: its devices.
        request: what is wanted.
        most: how many ways are wanted.
        budget: the steps that may be taken; unless given, a million for the best way, and as many to find any at all.
        width: how many states of a table are looked at in the first search.
        any_way: whether any way will do, and not only the best: what is found need not be complete then.
        known: what was found for this request on other hosts, whose levels and rules are the same; it grows.

    Raises:
        ValueError: the request names a group or level that there is not, or wants no device at all.

    Two GPUs, each with a NIC on its switch; the NIC of the first switch is not free:

    >>> names = {"gpu0": "pcie0", "gpu1": "pcie1", "nic1": "pcie1", "gpu2": "pcie2", "nic2": "pcie2"}
    >>> host = Host(("pcie",), tuple([Device(name, (switch,)) for name, switch in names.items()]))
    >>> gpus = Group(label="gpu", options={"gpu0": 0, "gpu1": 0, "gpu2": 0}, count=2)
    >>> nics = Group(label="nic", options={"nic1": 0, "nic2": 0}, per_subtree=True)
    >>> joint = Joint(primary="gpu", secondaries=("nic",), level="pcie")
    >>> allocate(host, Request(groups=(gpus, nics), joint=(joint,))).best.devices
    {'gpu': ('gpu1', 'gpu2'), 'nic': ('nic1', 'nic2')}
    """
    _check(host, request)
    host, counted, ties = without_like_ties(host, request)
    searched, twins = without_twins(host, counted)
    options = options_of(host, searched)
    usable = without_places_too_small(host, searched, options)
    if _is_hopeless(searched, usable):
        return DeviceAllocations(())
    limits = Limits(Budget(2 * STEPS) if budget is None else budget, width)
    attempts = Attempts(host, searched, options, usable=usable, most=most, limits=limits, known=known)
    costs, packing = attempts.best(of_any_cost=any_way), Costs(len(host.levels), len(options), uncounted=host.uncounted)
    chosen = [[options[number] for number in packing.chosen(cost)] for cost in costs]
    devices = [_devices(host, some, twins, ties) for some in chosen]
    devices = [{group.label: found[group.label] for group in request.groups} for found in devices]
    objectives = [packing.objective(cost) for cost in costs]
    return DeviceAllocations(tuple(map(DeviceAllocation, devices, objectives)), attempts.is_complete)


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


def _devices(
    host: Host, chosen: list[DeviceOption], twins: Twins, ties: Sequence[LikeTies]
) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for index, family in enumerate(twins.values()):
        found |= shared_out(host, [option for option in chosen if option.group == index], family)
    for alike in ties:
        found |= alike.shared_out(found, host)
    return found


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
