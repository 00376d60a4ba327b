"""Joint allocation of one host's devices: a number of GPUs with a NIC on the same PCIe switch, and the like.

After Koordinator's device allocation hints and joint allocation, made exact: finds an allocation whenever one exists,
and the best one by ``DeviceObjective``: fewest NUMA nodes, then fewest switches, then the fullest places, ties by the
natural order of names. Neither labels nor the order of the input matter.

What is identical is searched for once (``identical``). ``search`` builds tables of counts, from single devices up to
the host, and applies the rules of the request to each complete place; ``tables`` merges them.
"""

from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass

from placement.allocators import Budget
from placement.allocators.devices.identical import shared_out, without_identical_ties, without_twins
from placement.allocators.devices.request import THE_DEVICE, Host, Request, options_of
from placement.allocators.devices.search import Knapsack
from placement.allocators.devices.tables import Costs, DeviceObjective

STEPS = 1_000_000
"""How many pairs of states to look at for one host."""


@dataclass(frozen=True, slots=True)
class DeviceAllocation:
    """The devices that serve each group, by label, in natural order; and the objective they achieve."""

    devices: Mapping[str, tuple[str, ...]]
    objective: DeviceObjective


@dataclass(frozen=True, slots=True)
class DeviceAllocations:
    """Allocations, the best first; if not ``complete``, better ones, or any, may be missing.

    That is so where the budget ran out, where places of a host overlap without one enclosing the other, and where a
    group wants different cards but a card has devices in several places.
    """

    allocations: tuple[DeviceAllocation, ...]
    complete: bool = True

    @property
    def best(self) -> DeviceAllocation | None:
        """The best allocation, or None."""
        return self.allocations[0] if self.allocations else None


def host_key(host: Host, request: Request) -> Hashable:
    """Return all that an allocation depends on, besides what is the same for all hosts of a request."""
    return (
        tuple([(device.name, device.path, tuple(device.room.items()), device.card) for device in host.devices]),
        host.in_use,
        tuple(
            [(group.count, *sorted(group.meets.items()), *sorted(group.options.items())) for group in request.groups]
        ),
    )


def allocate(host: Host, request: Request, *, max_ways: int = 1, budget: Budget | None = None) -> DeviceAllocations:
    """Find up to ``max_ways`` best ways to serve a request on a host, in at most a million steps.

    Raises:
        ValueError: the request refers to an unknown group or level, repeats a label, or has a group without devices.

    Two GPUs, each with a NIC on its switch; the NIC of the first switch is not free:

    >>> from placement.allocators.devices.request import Device, Group, Joint
    >>> names = {"gpu0": "pcie0", "gpu1": "pcie1", "nic1": "pcie1", "gpu2": "pcie2", "nic2": "pcie2"}
    >>> host = Host(("pcie",), tuple([Device(name, (switch,)) for name, switch in names.items()]))
    >>> gpus = Group(label="gpu", options={"gpu0": 0, "gpu1": 0, "gpu2": 0}, count=2)
    >>> nics = Group(label="nic", options={"nic1": 0, "nic2": 0}, per_subtree=True)
    >>> joint = Joint(primary="gpu", secondaries=("nic",), level="pcie")
    >>> allocate(host, Request(groups=(gpus, nics), joint=(joint,))).best.devices
    {'gpu': ('gpu1', 'gpu2'), 'nic': ('nic1', 'nic2')}
    """
    _check(host, request)
    counted, ties = without_identical_ties(host, request)
    reduced, families = without_twins(counted)
    options = options_of(host, reduced)
    supply = Counter([option.group for option in options])
    if any([supply[index] < group.count for index, group in enumerate(reduced.groups)]):
        return DeviceAllocations(())
    costs = Costs(len(host.levels), len(options), uncounted=host.uncounted)
    budget = Budget(STEPS) if budget is None else budget.child(STEPS)
    search = Knapsack(host, reduced, options, costs=costs, max_ways=max_ways, budget=budget)
    allocations = []
    for cost in search.run():
        chosen = [options[number] for number in costs.chosen(cost)]
        devices: dict[str, tuple[str, ...]] = {}
        for index, family in enumerate(families):
            devices |= shared_out(host, [option for option in chosen if option.group == index], family)
        for identical in ties:
            devices |= identical.shared_out(devices, host)
        by_label = {group.label: devices[group.label] for group in request.groups}
        allocations.append(DeviceAllocation(by_label, costs.objective(cost)))
    return DeviceAllocations(tuple(allocations), search.is_complete)


def _check(host: Host, request: Request) -> None:
    labels = [group.label for group in request.groups]
    grouped = {label for rule in request.rules for label in rule.groups}
    levels = {rule.level for rule in request.rules}
    exclusive = {level for group in request.groups for level in group.exclusive} - {THE_DEVICE}
    if unknown := sorted(grouped - set(labels)):
        raise ValueError(f"There is no group {unknown[0]!r}.")
    if unknown := sorted((levels | exclusive) - {*host.levels}):
        raise ValueError(f"There is no level {unknown[0]!r}.")
    if len(set(labels)) < len(labels):
        raise ValueError("Two groups have one label.")
    if any([group.count < (0 if group.per_subtree else 1) for group in request.groups]):
        raise ValueError("A group wants no device at all.")
