"""The sections ``levels``, ``devices`` and ``exclusive``: what the parts of a server are called.

``levels`` names kinds of places and the traits of their providers; ``exclusive`` the lock class of each level, of which
consumers that share a place take 1 and a consumer that wants it exclusively takes all; ``devices`` how Koordinator's
device types and base resources map to resource classes and traits.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from placement.domain.device_types import DeviceSettings, DeviceType
from placement.domain.planner_request import THE_DEVICE
from placement.settings.planner.document import DocumentEntry
from placement.settings.planner.values import PlannerSettings

CLASS = "[A-Z0-9_]{1,255}"


NAME = "[a-z][a-z0-9_]*"

TRAIT = "[A-Z0-9_]{1,255}"


def read_devices(entry: DocumentEntry, known: PlannerSettings) -> DeviceSettings:
    """Return the devices that requests may name.

    Raises:
        ConfigurationError: an entry is invalid; the message names its line.
    """
    parts = entry.fields("types", "base", "host", "labels", "same_pcie", "same_numa")
    given: dict[str, Any] = {}
    if "types" in parts:
        given["types"] = MappingProxyType({name: _type(each) for name, each in parts["types"].mapping().items()})
    if "base" in parts:
        given["base"] = _base(parts["base"])
    if "host" in parts:
        given["host"] = _base(parts["host"])
    if "labels" in parts:
        given["labels"] = MappingProxyType({name: _prefix(each) for name, each in parts["labels"].mapping().items()})
    if "same_pcie" in parts:
        given["same_pcie"] = parts["same_pcie"].word(*known.levels)
    if "same_numa" in parts:
        given["same_numa"] = parts["same_numa"].word(*known.levels)
    return DeviceSettings(**given)


def _type(entry: DocumentEntry) -> DeviceType:
    if not entry.is_named_like(NAME):
        raise entry.misnamed("the name of a device type in lower case, such as rdma")
    parts = entry.fields(
        "class", "whole", "virtual_function", "label_prefix", "resources", "shared", required=["class"]
    )
    given: dict[str, Any] = {"resource_class": _class(parts["class"])}
    if "whole" in parts:
        given["whole"] = parts["whole"].whole_number(least=1)
    if "virtual_function" in parts:
        given["virtual_function"] = _class(parts["virtual_function"])
    if "label_prefix" in parts:
        given["label_prefix"] = _prefix(parts["label_prefix"])
    if "resources" in parts:
        given["resources"] = _resources(parts["resources"], given.get("whole", 1))
    if "shared" in parts:
        given["shared"] = parts["shared"].text()
    return DeviceType(**given)


def _resources(entry: DocumentEntry, whole: int) -> Mapping[str, int]:
    """Return how many of each resource make a device; those of a list are counted as the class is."""
    if entry.is_list:
        return MappingProxyType({each.text(): whole for each in entry.items()})
    return MappingProxyType({name: each.whole_number(least=1) for name, each in entry.mapping().items()})


def _base(entry: DocumentEntry) -> Mapping[str, str]:
    return MappingProxyType({name: _class(each) for name, each in entry.mapping().items()})


def _prefix(entry: DocumentEntry) -> str:
    return entry.text("CUSTOM_[A-Z0-9_]{0,200}", "the beginning of a custom trait")


def _class(entry: DocumentEntry) -> str:
    return entry.text(CLASS, "a resource class such as PGPU")


def read_exclusive(entry: DocumentEntry, known: PlannerSettings) -> Mapping[str, str]:
    """Return level name -> lock class.

    Raises:
        ConfigurationError: a level is unknown, or a class is malformed or locks two levels.
    """
    locks: dict[str, str] = {}
    for level, lock in entry.mapping().items():
        if level not in known.levels and level != THE_DEVICE:
            raise lock.misnamed(f"a level: {', '.join([*known.levels, THE_DEVICE])}")
        locks[level] = lock.text(CLASS, "a resource class such as CUSTOM_PCIE_LOCK")
        if list(locks.values()).count(locks[level]) > 1:
            raise lock.wrong("a resource class that no other level has")
    return MappingProxyType(locks)


def read_levels(entry: DocumentEntry, _known: PlannerSettings) -> Mapping[str, str]:
    """Return level name -> trait, in the file's order.

    Raises:
        ConfigurationError: a name or trait is malformed, or a trait stands for two levels.
    """
    levels: dict[str, str] = {}
    for name, trait in entry.mapping().items():
        if not trait.is_named_like(NAME):
            raise trait.misnamed("the name of a level in lower case, such as numa")
        levels[name] = trait.text(TRAIT, "a trait such as HW_NUMA_ROOT")
        if list(levels.values()).count(levels[name]) > 1:
            raise trait.wrong("a trait that no other level has")
    return MappingProxyType(levels)
