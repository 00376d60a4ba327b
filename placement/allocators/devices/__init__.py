"""Joint allocation of one host's devices: a number of GPUs with a NIC on the same PCIe switch, and the like.

After Koordinator's device allocation hints and joint allocation, made exact: finds an allocation whenever one exists,
and the best one by ``DeviceObjective``: fewest NUMA nodes, then fewest switches, then the fullest places, ties by the
natural order of names. Neither labels nor the order of the input matter.

What is identical is searched for once (``ties``, ``twins``), and devices that cannot serve are left out (``options``,
``confined``). ``attempts`` decides how to search. On a host with few places, each set of them is tried, and most groups
simply get what fits best (``few_places``, ``rivals``). Otherwise ``search`` builds tables of counts, from single
devices up to the host: ``tables`` merges them, ``place_rules`` applies rules, ``pruning`` drops what leads nowhere.
Counts and costs are packed into one integer each (``counters``, ``costs``), so that the innermost loops only add.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

from placement.allocators.budget import Budget
from placement.allocators.devices.attempts import STEPS, WIDTH, Attempts
from placement.allocators.devices.confined import without_places_too_small
from placement.allocators.devices.costs import DeviceObjective
from placement.allocators.devices.options import DeviceOption, options_of
from placement.allocators.devices.request import THE_DEVICE, Device, Group, Host, InOnePlace, Joint, Request
from placement.allocators.devices.search_memo import SearchMemo
from placement.allocators.devices.tables import Limits
from placement.allocators.devices.ties import IdenticalTies, without_identical_ties
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
    "Request",
    "SearchMemo",
    "allocate",
]


@dataclass(frozen=True, slots=True)
class DeviceAllocation:
    """The devices that serve each group, by label, in natural order; and the objective they achieve."""

    devices: Mapping[str, tuple[str, ...]]
    objective: DeviceObjective


@dataclass(frozen=True, slots=True)
class DeviceAllocations:
    """Allocations, the best first.

    ``complete`` is False if the search hit its budget: there may be better allocations then, or any at all.
    """

    allocations: tuple[DeviceAllocation, ...]
    complete: bool = True

    @property
    def best(self) -> DeviceAllocation | None:
        """The best allocation, or None."""
        return self.allocations[0] if self.allocations else None


def allocate(
    host: Host,
    request: Request,
    *,
    most: int = 1,
    budget: Budget | None = None,
    width: int = WIDTH,
    any_way: bool = False,
    memo: SearchMemo | None = None,
) -> DeviceAllocations:
    """Find the best ways to serve a request on a host.

    Args:
        host: its devices.
        request: what to allocate.
        most: the number of ways to find.
        budget: the steps to spend; by default a million for the best way, and as many for finding any at all.
        width: how many states of a table the first search, a beam search, keeps.
        any_way: whether any way will do, not just the best; the result need not be complete then.
        memo: what was found for this request on other hosts with the same levels and rules; it grows.

    Raises:
        ValueError: the request refers to an unknown group or level, repeats a label, or has a group without devices.

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
    host, counted, ties = without_identical_ties(host, request)
    searched, twins = without_twins(host, counted)
    options = options_of(host, searched)
    usable = without_places_too_small(host, searched, options)
    if _is_hopeless(searched, usable):
        return DeviceAllocations(())
    limits = Limits(Budget(2 * STEPS) if budget is None else budget, width)
    attempts = Attempts(host, searched, options, usable=usable, most=most, limits=limits, memo=memo)
    costs, packing = attempts.best(of_any_cost=any_way), attempts.packing
    numbered = {option.number: option for option in options}
    chosen = [[numbered[number] for number in packing.chosen(cost)] for cost in costs]
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
    host: Host, chosen: list[DeviceOption], twins: Twins, ties: Sequence[IdenticalTies]
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
