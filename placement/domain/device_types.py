"""Device configuration: Koordinator's device types and base resources, mapped to Placement's resource classes."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil
from types import MappingProxyType

from os_resource_classes import normalize_name

from placement.domain.quantities import amount_in, sum_of_amounts
from placement.errors import InvalidAt


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

    def class_of(self, name: str) -> str | None:
        """Return the resource class that a name stands for in profiles, groups and pods alike; None if it is no such.

        >>> DeviceSettings().class_of("nvidia.com/gpu"), DeviceSettings().class_of("memory")
        ('PGPU', 'MEMORY_MB')
        """
        if name in self.host:
            return self.host[name]
        kinds = [kind for type_, kind in self.types.items() if name == type_ or name in kind.resources]
        return kinds[0].resource_class if kinds else None

    def amounts_by_class(self, amounts: Mapping[str, int | str], where: tuple[str | int, ...]) -> dict[str, int]:
        """Return amounts under names or classes by class; whole numbers are in units of the class.

        Raises:
            InvalidAt: a name stands for no class, or an amount is not one of its class.

        >>> DeviceSettings().amounts_by_class({"cpu": 2, "memory": "8Gi", "koordinator.sh/rdma": 50}, ())
        {'VCPU': 2, 'MEMORY_MB': 8192, 'CUSTOM_RDMA_SHARE': 50}
        >>> DeviceSettings().amounts_by_class({"nvidia.com/t4": 1}, ())
        {'CUSTOM_NVIDIA_COM_T4': 1}
        """
        by_class: dict[str, int] = {}
        for name, quantity in amounts.items():
            # A vendor's name, as in profiles: one with a slash.
            resource_class = self.class_of(name) or (normalize_name(name) if "/" in name else name)
            if not re.fullmatch("[A-Z0-9_]+", resource_class):
                sentence = "This is neither a resource class nor a name under devices of planner.yaml."
                raise InvalidAt((*where, name), sentence)
            try:
                amount = Fraction(amount_in(resource_class, quantity))
                for kind in self.types.values():
                    amount *= Fraction(kind.whole, kind.resources[name]) if name in kind.resources else 1
                by_class[resource_class] = sum_of_amounts(by_class.get(resource_class, 0), ceil(amount))
            except ValueError as wrong:
                raise InvalidAt((*where, name), str(wrong)) from wrong
        return by_class
