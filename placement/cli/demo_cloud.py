"""The cloud and the request of ``placement demo``: data only.

Three hosts and a disk shelf: one host with two NUMA nodes, a GPU on each, and local disk; one without a disk of its
own; one plain and standalone. The shelf's disk is shared with all hosts in its aggregate.
"""

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

NAMESPACE = uuid.UUID("6b1b4a0e-9c5e-4f0e-8c39-5a7d1c0de310")
"""The namespace for uuids derived from names, so that every run of the demo has the same providers."""

DEVICE_LOCK = "CUSTOM_DEVICE_LOCK"
"""The class that locks a device for requests that want it exclusively, as in the sample planner file."""


@dataclass(frozen=True, slots=True)
class DemoProvider:
    """A provider and everything below it; devices have DEVICE_LOCK in addition to their inventory."""

    name: str
    inventory: Mapping[str, int] = field(default_factory=dict)
    traits: tuple[str, ...] = ()
    aggregate: str | None = None
    is_device: bool = False
    children: tuple["DemoProvider", ...] = ()

    @property
    def uuid(self) -> str:
        """The uuid derived from the name."""
        return uuid_of(self.name)


def uuid_of(name: str) -> str:
    """Return the uuid that a name has in every run of the demo."""
    return str(uuid.uuid5(NAMESPACE, name))


def walk(
    roots: tuple[DemoProvider, ...], parents: tuple[DemoProvider, ...] = ()
) -> Iterator[tuple[tuple[DemoProvider, ...], DemoProvider]]:
    """Yield (ancestors from the root down, provider) for every provider, parents before children."""
    for provider in roots:
        yield parents, provider
        yield from walk(provider.children, (*parents, provider))


def _numa_node(name: str, *devices: DemoProvider) -> DemoProvider:
    return DemoProvider(name, {"VCPU": 16, "MEMORY_MB": 65536}, ("HW_NUMA_ROOT",), children=devices)


def _gpu(name: str) -> DemoProvider:
    return DemoProvider(name, {"PGPU": 1}, ("CUSTOM_A100",), is_device=True)


def _fpga(name: str) -> DemoProvider:
    return DemoProvider(name, {"FPGA": 1}, is_device=True)


def _nic(name: str, *traits: str) -> DemoProvider:
    return DemoProvider(name, {"SRIOV_NET_VF": 8}, traits, is_device=True)


CLOUD = (
    DemoProvider(
        "compute1",
        {"DISK_GB": 500},
        ("STORAGE_DISK_SSD",),
        aggregate="rack1",
        children=(
            _numa_node("compute1-numa0", _gpu("compute1-gpu0")),
            _numa_node("compute1-numa1", _gpu("compute1-gpu1"), _fpga("compute1-fpga0")),
            _nic("compute1-nic0", "HW_NIC_ACCEL_SSL"),
            _nic("compute1-nic1"),
        ),
    ),
    DemoProvider(
        "compute2",
        aggregate="rack1",
        children=(
            _numa_node("compute2-numa0", _fpga("compute2-fpga0")),
            _numa_node("compute2-numa1", _gpu("compute2-gpu0")),
            _nic("compute2-nic0", "HW_NIC_ACCEL_SSL"),
        ),
    ),
    DemoProvider("compute3", {"VCPU": 8, "MEMORY_MB": 32768}),
    DemoProvider("storage1", {"DISK_GB": 10000}, ("MISC_SHARES_VIA_AGGREGATE",), aggregate="rack1"),
)

GROUPS = {
    "_COMPUTE": "a NUMA node with 4 VCPU and 8 GiB",
    "_GPU": "a GPU below that same node",
    "_NET": "2 VFs of a NIC that accelerates SSL",
    "_DISK": "100 GB of disk, local or shared",
}
"""What each request group, keyed by suffix, asks for."""

REQUEST = (
    ("resources_COMPUTE", "VCPU:4,MEMORY_MB:8192"),
    ("required_COMPUTE", "HW_NUMA_ROOT"),
    ("resources_GPU", "PGPU:1"),
    ("same_subtree", "_COMPUTE,_GPU"),
    ("resources_NET", "SRIOV_NET_VF:2"),
    ("required_NET", "HW_NIC_ACCEL_SSL"),
    ("resources_DISK", "DISK_GB:100"),
    ("group_policy", "none"),
)
"""The query string of GET /allocation_candidates."""
