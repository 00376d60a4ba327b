"""Joint allocation of one host's devices: a number of GPUs with a NIC on the same PCIe switch, and the like.

After Koordinator's device allocation hints and joint allocation, made exact: finds an allocation whenever one exists,
and the best one by ``DeviceObjective``: fewest NUMA nodes, then fewest switches, then the fullest places, ties by the
natural order of names. Neither labels nor the order of the input matter.

What is identical is searched for once (``identical``), and devices that cannot serve are left out (``request``).
``search`` builds tables of counts, from single devices up to the host: ``tables`` merges them and drops states that
lead nowhere, ``place_rules`` applies rules. Counts and costs are packed into one integer each (``tables``, ``costs``),
so that the innermost loops only add.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from placement.allocators.budget import Budget
from placement.allocators.devices.costs import DeviceObjective
from placement.allocators.devices.request import THE_DEVICE, Device, Group, Host, InOnePlace, Joint, Request
from placement.allocators.devices.search import DevicePlan, Knapsack, host_key

__all__ = [
    "STEPS",
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
    "allocate",
    "host_key",
]

STEPS = 1_000_000
"""How many pairs of states to look at for one host."""


@dataclass(frozen=True, slots=True)
class DeviceAllocation:
    """The devices that serve each group, by label, in natural order; and the objective they achieve."""

    devices: Mapping[str, tuple[str, ...]]
    objective: DeviceObjective


@dataclass(frozen=True, slots=True)
class DeviceAllocations:
    """Allocations, the best first; if not ``complete``, the budget ran out, and better ones or any may be missing."""

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
    max_ways: int = 1,
    budget: Budget | None = None,
) -> DeviceAllocations:
    """Find the best ways to serve a request on a host.

    Finds up to ``max_ways`` ways, and spends at most a million steps.

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
    plan = DevicePlan(host, request)
    if plan.is_hopeless:
        return DeviceAllocations(())
    budget = Budget(STEPS) if budget is None else budget.child(STEPS)
    search = Knapsack(plan, max_ways=max_ways, budget=budget)
    ways = search.run()
    allocations = [DeviceAllocation(plan.devices(cost), plan.costs.objective(cost)) for cost in ways]
    return DeviceAllocations(tuple(allocations), search.is_complete)
