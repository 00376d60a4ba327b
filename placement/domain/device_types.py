"""Device configuration: Koordinator's device types and base resources, mapped to Placement's resource classes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class DeviceType:
    """One of Koordinator's device types.

    Args:
        resource_class: the class in a device's inventory.
        whole: the amount of it that makes a whole device. Where it is 1, a request is a number of devices.
        virtual_function: the class of its virtual functions, which are on a child provider; None if it has none.
        label_prefix: the prefix of the traits that represent its labels.
        resources: name by which pods request it -> how many of it make a whole device.
        shared: the name by which pods say on how many devices they want shares.
    """

    resource_class: str
    whole: int = 1
    virtual_function: str | None = None
    label_prefix: str = "CUSTOM_LABEL_"
    resources: Mapping[str, int] = field(default_factory=dict)
    shared: str | None = None


PERCENT = 100
"""How many make a whole device for most of Koordinator's resources."""

DEFAULT_TYPES: Mapping[str, DeviceType] = MappingProxyType(
    {
        "gpu": DeviceType(
            "PGPU",
            label_prefix="CUSTOM_GPU_LABEL_",
            resources={
                "nvidia.com/gpu": 1,
                "amd.com/gpu": 1,
                "koordinator.sh/gpu": PERCENT,
                "koordinator.sh/gpu-core": PERCENT,
                "koordinator.sh/gpu-memory-ratio": PERCENT,
            },
            shared="koordinator.sh/gpu.shared",
        ),
        "rdma": DeviceType(
            "CUSTOM_RDMA_SHARE", PERCENT, "SRIOV_NET_VF", "CUSTOM_NIC_LABEL_", {"koordinator.sh/rdma": PERCENT}
        ),
        "fpga": DeviceType("FPGA", label_prefix="CUSTOM_FPGA_LABEL_", resources={"koordinator.sh/fpga": PERCENT}),
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
    """The ``devices`` section of the planner file.

    Args:
        types: name -> Koordinator's device type.
        base: last part of a hierarchical name -> resource class; parts not listed are classes themselves.
        host: the same for names outside any group and for containers: a host's own resources.
        labels: label of nodes -> prefix of the traits that represent it on the root, for conditions of pods.
        same_pcie: the level that SamePCIe and PCIeLevel denote.
        same_numa: the level that SameNUMANode denotes.
    """

    types: Mapping[str, DeviceType] = field(default_factory=lambda: DEFAULT_TYPES)
    base: Mapping[str, str] = field(default_factory=lambda: DEFAULT_BASE)
    host: Mapping[str, str] = field(default_factory=lambda: DEFAULT_HOST)
    labels: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    same_pcie: str = "pcie"
    same_numa: str = "numa"
