"""Compute drivers of three kinds of hosts: plain, with two NUMA nodes, with GPUs in two NUMA nodes."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import nova.conf
from nova.virt import fake


def inventory(total: int) -> dict[str, Any]:
    """Return an inventory in which nothing is reserved or overcommitted."""
    return {"total": total, "reserved": 0, "min_unit": 1, "max_unit": total, "step_size": 1, "allocation_ratio": 1.0}


class PlainHost(fake.FakeDriver):
    """A host without devices."""

    memory_mb, local_gb = 64 * 1024, 1000
    in_each_numa_node: Mapping[str, int] = MappingProxyType({})

    def update_provider_tree(self, provider_tree: Any, nodename: str, allocations: Any = None) -> None:
        super().update_provider_tree(provider_tree, nodename, allocations=allocations)
        for number in (0, 1) if self.in_each_numa_node else ():
            name = f"{nodename}-numa{number}"
            if not provider_tree.exists(name):
                provider_tree.new_child(name, nodename)
            given = {name: inventory(total) for name, total in self.in_each_numa_node.items()}
            provider_tree.update_inventory(name, given)
            provider_tree.update_traits(name, ["HW_NUMA_ROOT"])


class NumaHost(PlainHost):
    """A host with huge pages in two NUMA nodes."""

    memory_mb = 96 * 1024
    in_each_numa_node = MappingProxyType({"CUSTOM_HUGE_PAGES": 64})


class GpuHost(PlainHost):
    """A host with four GPUs in each of two NUMA nodes, and more CPUs and memory than the others."""

    memory_mb = 256 * 1024
    in_each_numa_node = MappingProxyType({"PGPU": 4, "CUSTOM_HUGE_PAGES": 64})


KINDS = (PlainHost, NumaHost, GpuHost)

VCPUS = (17, 31, 47, 19, 37, 53, 23, 41, 59, 29, 43, 61)
"""Primes, so no two hosts are equally full: among those, nova and Placement each have an order of their own."""


def driver_of_this_host(virtapi: Any, compute_driver: str | None = None) -> PlainHost:
    """Return the driver of the host that is being started: NumaHost4 is a NumaHost with the fifth number of VCPUS."""
    name = nova.conf.CONF.host
    kind = next(kind for kind in KINDS if name.startswith(kind.__name__))
    vcpus = VCPUS[int(name.removeprefix(kind.__name__))]
    return type(name, (kind,), {"vcpus": vcpus})(virtapi)  # type: ignore[no-any-return]
