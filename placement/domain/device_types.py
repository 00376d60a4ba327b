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
    """One of Koordinator's device types: the class in a device's inventory, and how much of it is a whole device.

    Virtual functions, of a class of their own, are on a child provider. ``label_prefix`` begins the traits for its
    labels. ``resources`` has how many of each name in pods make a whole device; by ``shared`` pods say on how many they
    want shares.
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

    ``base`` maps the last part of hierarchical names to classes, ``host`` names outside any group, ``labels`` labels of
    nodes to prefixes of the root's traits. ``same_pcie`` and ``same_numa`` are the levels that Koordinator's words
    denote.
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
        """Return amounts by class; whole numbers are in its units. InvalidAt for names and amounts that stand for none.

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


PREFIX = re.compile(r"alpha[^/]*/[^/]+/")
"""The prefix of names in the document: ``alpha.kubernetes.io/group-resource/``."""

Quantities = Mapping[str, int | str]
"""Hierarchical name -> amount, as written."""


def group_paths(
    written: Quantities, devices: DeviceSettings, where: tuple[str | int, ...] = ("paths",)
) -> dict[str, int]:
    """Return hierarchical name -> amount, with resource classes as base names; InvalidAt for a malformed amount.

    ``memory`` is the host's at the top level and a device's inside groups. An amount of 0 asks for nothing. See parts
    I-A, II and III of the document.

    >>> group_paths({"alpha.gpu/group/gpu/0/cards": 1, "memory": "1GiB", "gpu/0/memory": 0}, DeviceSettings())
    {'gpu/0/PGPU': 1, 'MEMORY_MB': 1024}
    """
    by_path: dict[str, int] = {}
    for name, quantity in written.items():
        groups, base = _split(PREFIX.sub("", name, count=1))
        if is_enumerated(base) and not groups:
            raise InvalidAt((*where, name), "An enumerated resource stands inside a group: gpu/0/enumType.")
        words = devices.base if groups else devices.host
        resource_class = words.get(base, base)
        full = "/".join([*groups, resource_class])
        try:
            if amount := amount_in(resource_class, quantity):
                by_path[full] = sum_of_amounts(by_path.get(full, 0), amount)
        except ValueError as wrong:
            raise InvalidAt((*where, name), str(wrong)) from wrong
    return by_path


def is_enumerated(base: str) -> bool:
    """Tell whether a resource is an enumeration, any bit of which suffices, by the document's convention."""
    return base.lower().startswith("enum")


def enumerated_traits(base: str, bits: int) -> frozenset[str]:
    """Return the traits that stand for the bits of an enumeration.

    >>> sorted(enumerated_traits("enumType", 0b101))
    ['CUSTOM_ENUMTYPE_0', 'CUSTOM_ENUMTYPE_2']
    """
    word = re.sub("[^A-Z0-9_]", "_", base.upper())
    return frozenset([f"CUSTOM_{word}_{bit}" for bit in range(bits.bit_length()) if bits >> bit & 1])


def _split(name: str) -> tuple[list[str], str]:
    parts = name.split("/")
    groups = len(parts) - (len(parts) - 1) % 2 - 1
    return parts[:groups], "/".join(parts[groups:])
