"""Reading PlannerSettings from the planner file: how it is found, the table of its sections, and the short ones.

To add a section: give ``PlannerSettings`` (values.py) a field of the section's name, with the default for files that
omit it; write a module with ``read_<section>(entry, known)`` that returns the field's value, using the methods of
``DocumentEntry`` (they raise errors that name file, line and key; ``entry.wrong("...")`` creates your own); add it to
``SECTIONS``; and show it in ``etc/placement/planner.yaml``. Sections are read in the table's order, whatever their
order in the file, and ``known`` holds those already read: a section may refer to levels and profiles.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from placement.domain.device_types import DeviceSettings, DeviceType
from placement.domain.flavors import Flavor, flavor_query
from placement.domain.pasting import NUMBERS
from placement.domain.planner_request import THE_DEVICE, THE_HOST
from placement.settings.planner.document import DocumentEntry, Reader, read_document
from placement.settings.planner.fair_share import read_fair_share
from placement.settings.planner.profiles import read_default_profile, read_profiles
from placement.settings.planner.values import OwnerNames, PlannerSettings

if TYPE_CHECKING:
    from oslo_config.cfg import ConfigOpts

CLASS = "[A-Z0-9_]{1,255}"


NAME = "[a-z][a-z0-9_]*"

TRAIT = "[A-Z0-9_]{1,255}"


def read_devices(entry: DocumentEntry, known: PlannerSettings) -> DeviceSettings:
    """Return the devices that requests may name.

    Raises:
        ConfigurationError: an entry is invalid; the message names its line.
    """
    readers: Mapping[str, Reader] = {
        "types": lambda types: types.each(_type),
        "base": lambda base: base.each(_class),
        "host": lambda host: host.each(_class),
        "labels": lambda labels: labels.each(_prefix),
        "same_pcie": lambda level: level.word(*known.levels),
        "same_numa": lambda level: level.word(*known.levels),
    }
    return DeviceSettings(**entry.given(readers))


def _type(entry: DocumentEntry) -> DeviceType:
    if not entry.is_named_like(NAME):
        raise entry.misnamed("the name of a device type in lower case, such as rdma")
    readers: Mapping[str, Reader] = {
        "class": _class,
        "whole": DocumentEntry.count,
        "virtual_function": _class,
        "label_prefix": _prefix,
        "resources": lambda resources: resources,
        "shared": DocumentEntry.text,
    }
    given = entry.given(readers, required=["class"])
    if "resources" in given:
        given["resources"] = _resources(given["resources"], given.get("whole", 1))
    return DeviceType(resource_class=given.pop("class"), **given)


def _resources(entry: DocumentEntry, whole: int) -> Mapping[str, int]:
    """Return how many of each resource make a device; those of a list are counted as the class is."""
    if entry.is_list:
        return MappingProxyType({each.text(): whole for each in entry.items()})
    return entry.each(DocumentEntry.count)


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


TRAIT_OR_NOT = "!?[A-Z0-9_]{1,255}"


def read_flavor_root_required(entry: DocumentEntry, _known: PlannerSettings) -> tuple[str, ...]:
    """Return the traits that request filters of this cloud's nova add for each flavor.

    Raises:
        ConfigurationError: one is no trait.
    """
    return entry.texts(TRAIT_OR_NOT, "a trait such as OWNER_NOVA")


def read_flavors(entry: DocumentEntry, known: PlannerSettings) -> Mapping[str, str]:
    """Return flavor name -> query string, in the file's order. A flavor is that, or has the fields that nova gives it.

    Raises:
        ConfigurationError: a flavor is neither a query string nor one of nova's flavors.
    """
    return entry.each(lambda flavor: _query(flavor, known))


def read_private_flavors(entry: DocumentEntry, known: PlannerSettings) -> frozenset[str]:
    """Return the names of flavors that not every project may use.

    Raises:
        ConfigurationError: there is no such flavor.
    """
    names = {item.text(): item for item in entry.items()}
    for name, item in names.items():
        if name not in known.flavors:
            raise item.wrong("the name of a flavor")
    return frozenset(names)


def _query(entry: DocumentEntry, known: PlannerSettings) -> str:
    if not entry.is_mapping:
        return entry.text(".*resources.*=.+", "a query string such as resources=VCPU:2")
    readers: Mapping[str, Reader] = dict.fromkeys(NUMBERS, DocumentEntry.whole_number)
    given = entry.given({**readers, "extra_specs": lambda specs: specs.each(DocumentEntry.text)})
    flavor = Flavor(**{"extra_specs": {}, **given})
    try:
        return flavor_query(flavor, root_required=known.flavor_root_required).query
    except ValueError as wrong:
        raise entry.wrong(f"a flavor that nova boots ({wrong})") from None


KIND = "[a-z][a-z0-9_-]{0,30}"
NAME_OF_GROUP = "[^\x00-\x1f\x7f/]{1,100}"
UUID = "[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"


def read_aggregates(entry: DocumentEntry, _known: PlannerSettings) -> Mapping[str, Mapping[str, tuple[str, ...]]]:
    """Return kind -> name -> the uuids of its aggregates, with kinds and names in the file's order.

    Raises:
        ConfigurationError: a kind, name or uuid is malformed, or a uuid has two names of one kind.
    """
    return entry.each(_names)


def _names(entry: DocumentEntry) -> Mapping[str, tuple[str, ...]]:
    if not entry.is_named_like(KIND):
        raise entry.misnamed("a kind of aggregates in lower case, such as zone or rack")
    if entry.is_named_like(THE_HOST):
        raise entry.misnamed("another kind than host, which each tree is by itself")
    found: dict[str, tuple[str, ...]] = {}
    seen: set[str] = set()
    for name, entry_ in entry.mapping(at_least=1).items():
        if not entry_.is_named_like(NAME_OF_GROUP):
            raise entry_.misnamed("a name of up to 100 characters, without a slash")
        found[name] = tuple([_uuid(item, seen) for item in _items(entry_)])
    return MappingProxyType(found)


def _items(entry: DocumentEntry) -> list[DocumentEntry]:
    if not entry.is_list:
        return [entry]
    items = entry.items()
    if not items:
        raise entry.wrong("the uuid of an aggregate, or a list of them")
    return items


def _uuid(entry: DocumentEntry, seen: set[str]) -> str:
    uuid = entry.text(UUID, "the uuid of an aggregate, or a list of them").lower()
    if uuid in seen:
        raise entry.wrong("an aggregate that has no other name of this kind")
    seen.add(uuid)
    return uuid


PLANNER_FILE = "planner.yaml"

OWNER_NAME = ".{1,255}"


def read_names(entry: DocumentEntry, _known: PlannerSettings) -> OwnerNames:
    """Return the names of projects and users, from the section or from the file that it names.

    Raises:
        ConfigurationError: a name is no text, or the file has no such section.
    """
    if not entry.is_mapping:
        file = Path(entry.file).parent / entry.text(expected="projects and users by id, or a file with them")
        document = read_document(file)
        if document is None:
            raise entry.wrong("a file with the section names, as 'placement names import' prints it")
        entry = document.fields("names", required=("names",))["names"]
    names: Reader = lambda names: names.each(lambda name: name.text(OWNER_NAME, "a name of up to 255 characters"))  # noqa: E731
    return OwnerNames(**entry.given({"projects": names, "users": names}))


SECTIONS: Mapping[str, Callable[[DocumentEntry, PlannerSettings], Any]] = {
    "levels": read_levels,
    "devices": read_devices,
    "profiles": read_profiles,
    "default_profile": read_default_profile,
    "fair_share": read_fair_share,
    "exclusive": read_exclusive,
    "flavor_root_required": read_flavor_root_required,
    "flavors": read_flavors,
    "private_flavors": read_private_flavors,
    "aggregates": read_aggregates,
    "names": read_names,
}


def load_planner(path: Path | None) -> PlannerSettings:
    """Return the planner file's settings, with defaults for omitted sections, or for all without a file.

    Raises:
        ConfigurationError: one sentence that names file, line, key and what was expected.
    """
    document = read_document(path) if path else None
    return _planner(document) if document else PlannerSettings()


def planner_file(source: "ConfigOpts") -> Path | None:
    """Return the path of the planner file, or None if there is none.

    It is searched for in the directories given with ``--config-dir`` and next to the configuration files, the last one
    first. If no configuration file was read, only ``[ranking] planner_file`` can name it.
    """
    name = source.ranking.planner_file
    places = [*(Path(file).parent for file in source.config_file), *map(Path, source.config_dir)]
    for place in reversed(places):
        # A dangling link counts as present: failing to read it is better than silently using defaults.
        if os.path.lexists(place / (name or PLANNER_FILE)):
            return place / (name or PLANNER_FILE)
    return Path(name) if name else None


def _planner(document: DocumentEntry) -> PlannerSettings:
    entries = document.fields(*SECTIONS)
    planner = PlannerSettings()
    for name, read in SECTIONS.items():
        if name in entries:
            planner = replace(planner, **{name: read(entries[name], planner)})
    if planner.default_profile not in planner.profiles:
        raise entries["profiles"].wrong("a profile named default, or the key default_profile beside it")
    return planner
