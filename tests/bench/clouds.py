"""The shapes of the clouds that are measured: names like ``nested-1000`` give the shape and the number of hosts.

The name determines everything, so a cloud can be recreated. rows.py writes them.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import os_traits

AGGREGATES = 8
POOLS = 200
"""Aggregates that have their own pools in a pooled cloud."""

WIDE_HOSTS = 100

SHARES = "MISC_SHARES_VIA_AGGREGATE"
FEATURES = tuple(sorted(name for name in os_traits.get_traits("HW_CPU_X86_")))[:40]
CUSTOM_TRAITS = ("CUSTOM_GPU_A100", "CUSTOM_HW_PCIE_SWITCH")


@dataclass(slots=True)
class Node:
    """A provider to be written, with its descendants."""

    name: str
    inventory: dict[str, int] = field(default_factory=dict)
    traits: tuple[str, ...] = ()
    aggregates: tuple[int, ...] = ()
    children: "list[Node]" = field(default_factory=list)


def flat(index: int) -> Node:
    """Return a host without nested providers."""
    fast = ("STORAGE_DISK_SSD",) if index % 2 else ()
    return Node(
        f"host{index}",
        {"VCPU": 64, "MEMORY_MB": 262144, "DISK_GB": 2000},
        ("HW_CPU_X86_AVX2", "COMPUTE_VOLUME_MULTI_ATTACH", *fast),
        (index % AGGREGATES,),
    )


def nested(index: int) -> Node:
    """Return a host with two NUMA nodes of two NICs (PFs) with VFs each: seven providers."""
    host = Node(f"host{index}", {"DISK_GB": 2000}, ("COMPUTE_VOLUME_MULTI_ATTACH",), (index % AGGREGATES,))
    for numa in range(2):
        node = Node(f"host{index}-numa{numa}", {"VCPU": 32, "MEMORY_MB": 131072}, ("HW_NUMA_ROOT",))
        for nic in range(2):
            # One NIC supports offloading, except in every fifth host, so a request for it fits most hosts, each in one
            # way.
            offload = ("HW_NIC_OFFLOAD_GENEVE",) if index % 5 and not numa and not nic else ()
            node.children.append(
                Node(f"host{index}-numa{numa}-pf{nic}", {"SRIOV_NET_VF": 8}, ("HW_NIC_SRIOV", *offload))
            )
        host.children.append(node)
    return host


def numa_gpu(index: int) -> Node:
    """Return a host with two NUMA nodes of four GPUs and two NICs each: fifteen providers."""
    host = Node(f"host{index}", {"DISK_GB": 2000}, (), (index % AGGREGATES,))
    for numa in range(2):
        name = f"host{index}-numa{numa}"
        node = Node(name, {"VCPU": 32, "MEMORY_MB": 131072}, ("HW_NUMA_ROOT",))
        node.children += [Node(f"{name}-gpu{gpu}", {"PGPU": 1}, ("CUSTOM_GPU_A100",)) for gpu in range(4)]
        node.children += [Node(f"{name}-nic{nic}", {"SRIOV_NET_VF": 8}, ("HW_NIC_SRIOV",)) for nic in range(2)]
        host.children.append(node)
    return host


def numa(index: int) -> Node:
    """Return a host with two NUMA nodes."""
    name = f"host{index}"
    nodes = [Node(f"{name}-numa{number}", {"VCPU": 32, "MEMORY_MB": 1 << 17}, ("HW_NUMA_ROOT",)) for number in range(2)]
    return Node(name, {"DISK_GB": 2000}, children=nodes)


def devices(index: int) -> Node:
    """Return a host with two NUMA nodes of four PCIe switches, each with a GPU and a NIC."""
    host = Node(f"host{index}", {"MEMORY_MB": 1 << 20})
    for numa_number in range(2):
        node = Node(f"{host.name}-numa{numa_number}", {"VCPU": 64}, ("HW_NUMA_ROOT",))
        for switch_number in range(4):
            name = f"{host.name}-switch{numa_number}.{switch_number}"
            below = [Node(f"{name}-gpu", {"PGPU": 1}), Node(f"{name}-nic", {"SRIOV_NET_VF": 8}, ("HW_NIC_SRIOV",))]
            node.children.append(Node(name, {}, ("CUSTOM_HW_PCIE_SWITCH",), children=below))
        host.children.append(node)
    return host


def wide(count: int) -> Callable[[int], Node]:
    """Return a factory of hosts with many single-unit devices."""

    def host(index: int) -> Node:
        below = [Node(f"host{index}-dev{device}", {"PGPU": 1}) for device in range(count)]
        return Node(f"host{index}", {"VCPU": 64, "MEMORY_MB": 262144}, children=below)

    return host


def pcie(switches: int) -> Callable[[int], Node]:
    """Return a factory of hosts with PCIe switches, each with one GPU and one NIC."""

    def host(index: int) -> Node:
        root = Node(f"host{index}", {"VCPU": 64, "MEMORY_MB": 262144})
        for switch in range(switches):
            name = f"host{index}-switch{switch}"
            below = [Node(f"{name}-gpu", {"PGPU": 1}), Node(f"{name}-nic", {"SRIOV_NET_VF": 8})]
            root.children.append(Node(name, {}, ("CUSTOM_HW_PCIE_SWITCH",), children=below))
        return root

    return host


def shared(hosts: int) -> Iterator[Node]:
    """Yield hosts without disks, and for each aggregate two storage pools that serve its hosts."""
    for number in range(AGGREGATES):
        for pool in range(2):
            storage = {"DISK_GB": 1_000_000}
            yield Node(f"pool{number}-{pool}", storage, (SHARES,), (number,))
    for index in range(hosts):
        yield Node(f"host{index}", {"VCPU": 64, "MEMORY_MB": 262144}, (), (index % AGGREGATES,))


def pooled(hosts: int) -> Iterator[Node]:
    """Yield nested hosts with forty traits, in three of 200 aggregates; each aggregate has pools of IPs and disks."""
    for number in range(POOLS):
        yield Node(f"ips{number}", {"IPV4_ADDRESS": 250}, (SHARES,), (number,))
        yield Node(f"disks{number}", {"DISK_GB": 3200}, (SHARES,), (number, (number + 1) % POOLS))
    for index in range(hosts):
        host = nested(index)
        traits = tuple(name for place, name in enumerate(FEATURES) if (index + place) % 4)
        aggregates = tuple({index % POOLS, index * 7 % POOLS, index * 31 % POOLS})
        yield replace(host, traits=(*host.traits, *traits), aggregates=aggregates)


def mixed(hosts: int) -> Iterator[Node]:
    """Yield hosts of every shape in fixed proportions, some of them served by storage pools."""
    for prefix, make, tenths in (
        ("nested", nested, 3),
        ("numa", numa_gpu, 3),
        ("pcie", pcie(8), 2),
        ("wide", wide(16), 1),
    ):
        for index in range(hosts * tenths // 10):
            yield _renamed(make(index), prefix)
    yield from shared(hosts // 10)


def _renamed(node: Node, prefix: str) -> Node:
    children = [_renamed(child, prefix) for child in node.children]
    return replace(node, name=f"{prefix}-{node.name}", children=children)


def cloud(name: str) -> Iterator[Node]:
    """Yield the roots of a cloud by its name.

    Names are flat-N, numa-N, nested-N, numa-gpu-N, devices-N, shared-N, pooled-N and mixed-N for N hosts, wide-DEVICES
    and pcie-SWITCHES.
    """
    shape, _, number = name.rpartition("-")
    size = int(number)
    together = {"shared": shared, "pooled": pooled, "mixed": mixed}
    if shape in together:
        yield from together[shape](size)
        return
    shapes: dict[str, tuple[Callable[[int], Node], int]] = {
        "flat": (flat, size),
        "numa": (numa, size),
        "nested": (nested, size),
        "devices": (devices, size),
        "numa-gpu": (numa_gpu, size),
        "wide": (wide(size), WIDE_HOSTS),
        "pcie": (pcie(size), 1),
    }
    make, hosts = shapes[shape]
    for index in range(hosts):
        yield make(index)
