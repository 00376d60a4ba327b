"""The section ``devices``: how Koordinator's device types and base resources map to resource classes and traits."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from placement.domain.device_types import DeviceSettings, DeviceType
from placement.settings.planner.document import DocumentEntry
from placement.settings.planner.levels import NAME
from placement.settings.planner.values import PlannerSettings

CLASS = "[A-Z0-9_]{1,255}"


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
