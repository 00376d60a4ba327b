"""What an operator says about devices: Koordinator's device types and base resources, in Placement's words."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class DeviceType:
    """One of Koordinator's device types.

    Args:
        resource_class: the class that a device has inventory of.
        whole: how much of it one whole device has. Where it is 1, a request is a number of devices.
        virtual_function: the class of its virtual functions, which are a child provider of it; None where it has none.
        label_prefix: what the traits that stand for its labels begin with.
        resources: the names that pods request it by.
    """

    resource_class: str
    whole: int = 1
    virtual_function: str | None = None
    label_prefix: str = "CUSTOM_LABEL_"
    resources: tuple[str, ...] = ()


DEFAULT_TYPES: Mapping[str, DeviceType] = MappingProxyType(
    {
        "gpu": DeviceType("PGPU", label_prefix="CUSTOM_GPU_LABEL_", resources=("nvidia.com/gpu", "amd.com/gpu")),
        "rdma": DeviceType("CUSTOM_RDMA_SHARE", 100, "SRIOV_NET_VF", "CUSTOM_NIC_LABEL_", ("koordinator.sh/rdma",)),
        "fpga": DeviceType("FPGA", label_prefix="CUSTOM_FPGA_LABEL_", resources=("koordinator.sh/fpga",)),
    }
)
DEFAULT_BASE: Mapping[str, str] = MappingProxyType(
    {"cards": "PGPU", "memory": "CUSTOM_GPU_MEMORY_MB", "cores": "CUSTOM_GPU_CORE", "cpu": "VCPU"}
)
DEFAULT_HOST: Mapping[str, str] = MappingProxyType(
    {"cpu": "VCPU", "memory": "MEMORY_MB", "ephemeral-storage": "DISK_GB"}
)


@dataclass(frozen=True, slots=True)
class DeviceSettings:
    """The section ``devices`` of the planner file.

    Args:
        types: Koordinator's device types by name.
        base: the resource classes that the last parts of hierarchical names mean; other parts are classes themselves.
        host: the same of names that stand outside of any group, and of containers: what a host has.
        same_pcie: the level that SamePCIe and PCIeLevel mean.
        same_numa: the level that SameNUMANode means.
    """

    types: Mapping[str, DeviceType] = field(default_factory=lambda: DEFAULT_TYPES)
    base: Mapping[str, str] = field(default_factory=lambda: DEFAULT_BASE)
    host: Mapping[str, str] = field(default_factory=lambda: DEFAULT_HOST)
    same_pcie: str = "pcie"
    same_numa: str = "numa"
