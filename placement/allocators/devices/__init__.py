"""Joint allocation of one host's devices: a number of GPUs with a NIC on the same PCIe switch, and the like.

After Koordinator's device allocation hints and joint allocation, made exact: finds an allocation whenever one exists,
and the best one by ``DeviceObjective``: fewest NUMA nodes, then fewest switches, then the fullest places, ties by the
natural order of names. Neither labels nor the order of the input matter.

What is identical is searched for once (``ties``, ``twins``), and devices that cannot serve are left out (``options``,
``confined``): a ``plan``, for all hosts that differ only in how well their devices fit. ``attempts`` decides how to
search. On a host with few places, each set of them is tried (``place_sets``), and most groups simply get what fits best
(``few_places``, ``rivals``). Otherwise ``search`` builds tables of counts, from single devices up to the host:
``tables`` merges them, ``place_rules`` applies rules, ``pruning`` drops what leads nowhere. Counts and costs are packed
into one integer each (``counters``, ``costs``), so that the innermost loops only add.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from placement.allocators.budget import Budget
from placement.allocators.devices.attempts import STEPS, WIDTH, Attempts
from placement.allocators.devices.costs import DeviceObjective
from placement.allocators.devices.plan import DevicePlan, HostKey, host_key
from placement.allocators.devices.request import THE_DEVICE, Device, Group, Host, InOnePlace, Joint, Request
from placement.allocators.devices.search_memo import SearchMemo
from placement.allocators.devices.tables import Limits

__all__ = [
    "THE_DEVICE",
    "Device",
    "DeviceAllocation",
    "DeviceAllocations",
    "DeviceObjective",
    "Group",
    "Host",
    "HostKey",
    "InOnePlace",
    "Joint",
    "Request",
    "SearchMemo",
    "allocate",
    "host_key",
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
    key: HostKey | None = None,
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
        key: the key of the host, if known.

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
    if memo is None:
        plan = DevicePlan(host, request)
    else:
        plan = memo.plan(host, request, (key or host_key(host, request)).form)
    if plan.is_hopeless:
        return DeviceAllocations(())
    own = plan.own_costs({group.label: group.options for group in request.groups})
    limits = Limits(Budget(2 * STEPS) if budget is None else budget, width)
    attempts = Attempts(plan, own, most=most, limits=limits, memo=memo)
    found = [
        DeviceAllocation(plan.devices(own.packing.chosen(cost)), own.packing.objective(cost))
        for cost in attempts.best(of_any_cost=any_way)
    ]
    return DeviceAllocations(tuple(found), attempts.is_complete)
