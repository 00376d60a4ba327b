"""Translates requests in the notation of the Group Allocator's document: strips prefixes, maps classes and amounts."""

import re
from collections.abc import Mapping

from placement.domain.device_types import DeviceSettings
from placement.domain.quantities import amount_in, sum_of_amounts
from placement.errors import InvalidAt

PREFIX = re.compile(r"alpha[^/]*/[^/]+/")
"""The prefix of names in the document: ``alpha.kubernetes.io/group-resource/``."""

Quantities = Mapping[str, int | str]
"""Hierarchical name -> amount, as written."""


def group_paths(
    written: Quantities, devices: DeviceSettings, where: tuple[str | int, ...] = ("paths",)
) -> dict[str, int]:
    """Return hierarchical name -> amount, with resource classes as base names.

    ``memory`` is the host's at the top level and a device's inside groups. An amount of 0 does not ask for the
    resource.

    See parts I-A, II and III of the document.

    Raises:
        InvalidAt: an amount is malformed, or an enumeration is outside groups.

    >>> group_paths({"alpha.gpu/group/gpu/0/cards": 1, "memory": "1GiB", "gpu/0/memory": 0}, DeviceSettings())
    {'gpu/0/PGPU': 1, 'MEMORY_MB': 1024}
    """
    found: dict[str, int] = {}
    for name, quantity in written.items():
        groups, base = _split(PREFIX.sub("", name, count=1))
        if is_enumerated(base) and not groups:
            raise InvalidAt((*where, name), "An enumerated resource stands inside a group: gpu/0/enumType.")
        words = devices.base if groups else devices.host
        resource_class = words.get(base, base)
        full = "/".join([*groups, resource_class])
        try:
            if amount := amount_in(resource_class, quantity):
                found[full] = sum_of_amounts(found.get(full, 0), amount)
        except ValueError as wrong:
            raise InvalidAt((*where, name), str(wrong)) from wrong
    return found


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
    """Split a name into its groups, with their labels, and the rest."""
    parts = name.split("/")
    groups = len(parts) - (len(parts) - 1) % 2 - 1
    return parts[:groups], "/".join(parts[groups:])
