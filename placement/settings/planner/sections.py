"""The planner file: how it is found, the table of its sections, and the readers of all but profiles.

To add a section: give ``PlannerSettings`` a field of the section's name, with the default for files that omit it; write
a reader with the methods of ``DocumentEntry``; add it to ``SECTIONS``, ``keys.py`` and ``etc/placement/planner.yaml``.
Sections are read in the table's order, whatever their order in the file.
"""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from placement.allocators import Number, exact
from placement.allocators.fair_share.queues import Contradiction, Queue, QueueCapacity, QueueTree, tree_of
from placement.allocators.fair_share.tree import GREATEST_WEIGHT, LEAST_WEIGHT, SEPARATOR
from placement.domain.device_types import DeviceSettings, DeviceType
from placement.domain.planner_request import THE_DEVICE, THE_HOST
from placement.errors import ConfigurationError
from placement.formats.flavors import Flavor, flavor_query
from placement.formats.pasting import NUMBERS
from placement.settings.planner.document import DocumentEntry, Reader, read_document
from placement.settings.planner.profiles import read_profiles
from placement.settings.planner.values import FairShareSettings, Leaves, OwnerNames, PlannerSettings

if TYPE_CHECKING:
    from oslo_config.cfg import ConfigOpts

CLASS = "[A-Z0-9_]{1,255}"
NAME = "[a-z][a-z0-9_]*"
UUID = "[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"


def _devices(entry: DocumentEntry, planner: PlannerSettings) -> DeviceSettings:
    readers: Mapping[str, Reader] = {
        "types": lambda types: types.read_values(_device_type),
        "base": lambda base: base.read_values(_class),
        "host": lambda host: host.read_values(_class),
        "labels": lambda labels: labels.read_values(_prefix),
        "same_pcie": lambda level: level.word(*planner.levels),
        "same_numa": lambda level: level.word(*planner.levels),
    }
    return DeviceSettings(**entry.read_keys(readers))


def _device_type(entry: DocumentEntry) -> DeviceType:
    entry.check_name(NAME, "the name of a device type in lower case, such as rdma")
    readers: Mapping[str, Reader] = {
        "class": _class,
        "whole": DocumentEntry.count,
        "virtual_function": _class,
        "label_prefix": _prefix,
        "resources": lambda resources: resources,
        "shared": DocumentEntry.text,
    }
    values = entry.read_keys(readers, required=["class"])
    if (resources := values.get("resources")) is not None:
        # Those of a list are counted as the class is.
        whole = dict.fromkeys(resources.texts(), values.get("whole", 1)) if resources.is_list else None
        values["resources"] = resources.read_values(DocumentEntry.count) if whole is None else MappingProxyType(whole)
    return DeviceType(resource_class=values.pop("class"), **values)


def _prefix(entry: DocumentEntry) -> str:
    return entry.text("CUSTOM_[A-Z0-9_]{0,200}", "the beginning of a custom trait")


def _class(entry: DocumentEntry) -> str:
    return entry.text(CLASS, "a resource class such as PGPU")


def _exclusive(entry: DocumentEntry, planner: PlannerSettings) -> Mapping[str, str]:
    def lock_class(lock: DocumentEntry) -> str:
        lock.check_name("|".join(levels), f"a level: {', '.join(levels)}")
        return lock.text(CLASS, "a resource class such as CUSTOM_PCIE_LOCK")

    levels = [*planner.levels, THE_DEVICE]
    return entry.read_distinct_values(lock_class, "a resource class that no other level has")


def _levels(entry: DocumentEntry, _planner: PlannerSettings) -> Mapping[str, str]:
    def trait_of_level(trait: DocumentEntry) -> str:
        trait.check_name(NAME, "the name of a level in lower case, such as numa")
        return trait.text(CLASS, "a trait such as HW_NUMA_ROOT")

    return entry.read_distinct_values(trait_of_level, "a trait that no other level has")


def _flavors(entry: DocumentEntry, planner: PlannerSettings) -> Mapping[str, str]:
    """Return flavor name -> query string. A flavor is that, or has the fields that nova gives it."""

    def query(flavor: DocumentEntry) -> str:
        if not flavor.is_mapping:
            return flavor.text(".*resources.*=.+", "a query string such as resources=VCPU:2")
        readers: Mapping[str, Reader] = dict.fromkeys(NUMBERS, DocumentEntry.whole_number)
        values = flavor.read_keys({**readers, "extra_specs": lambda specs: specs.read_values(DocumentEntry.text)})
        try:
            return flavor_query(
                Flavor(**{"extra_specs": {}, **values}), root_required=planner.flavor_root_required
            ).query
        except ValueError as wrong:
            raise flavor.wrong(f"a flavor that nova boots ({wrong})") from None

    return entry.read_values(query)


def _private_flavors(entry: DocumentEntry, planner: PlannerSettings) -> frozenset[str]:
    for item in entry.items():
        if item.text() not in planner.flavors:
            raise item.wrong("the name of a flavor")
    return frozenset(entry.texts())


def _aggregates(entry: DocumentEntry, _planner: PlannerSettings) -> Mapping[str, Mapping[str, tuple[str, ...]]]:
    """Return kind -> name -> the uuids of its aggregates, with kinds and names in the file's order."""
    return entry.read_values(_aggregates_of_kind)


def _aggregates_of_kind(entry: DocumentEntry) -> Mapping[str, tuple[str, ...]]:
    entry.check_name("[a-z][a-z0-9_-]{0,30}", "a kind of aggregates in lower case, such as zone or rack")
    entry.check_name(f"(?!{THE_HOST}$).*", "another kind than host, which each tree is by itself")
    uuids: set[str] = set()
    of_kind: dict[str, tuple[str, ...]] = {}
    for name, group in entry.mapping(at_least=1).items():
        group.check_name("[^\x00-\x1f\x7f/]{1,100}", "a name of up to 100 characters, without a slash")
        items = group.items() if group.is_list else [group]
        if not items:
            raise group.wrong("the uuid of an aggregate, or a list of them")
        for item in items:
            uuid = item.text(UUID, "the uuid of an aggregate, or a list of them").lower()
            if uuid in uuids:
                raise item.wrong("an aggregate that has no other name of this kind")
            uuids.add(uuid)
            of_kind[name] = (*of_kind.get(name, ()), uuid)
    return MappingProxyType(of_kind)


PLANNER_FILE = "planner.yaml"


def _names(entry: DocumentEntry, _planner: PlannerSettings) -> OwnerNames:
    """Return the names of projects and users, from the section or from the file that it names."""
    if not entry.is_mapping:
        file = Path(entry.file).parent / entry.text(expected="projects and users by id, or a file with them")
        document = read_document(file)
        if document is None:
            raise entry.wrong("a file with the section names, as 'placement names import' prints it")
        entry = document.fields("names", required=("names",))["names"]

    def names(owners: DocumentEntry) -> Mapping[str, str]:
        return owners.read_values(lambda name: name.text(".{1,255}", "a name of up to 255 characters"))

    return OwnerNames(**entry.read_keys({"projects": names, "users": names}))


MEMBERS: Mapping[Leaves, str] = {"project": "projects", "consumer_type": "consumer_types"}
"""The key under which a queue lists its members."""

_PATH = "[^/]+(/[^/]+)+"
_PROMISES = ("guarantee", "deserved", "limit")
_A_PATH = "a path such as root/eng/dev"
_A_WEIGHT = "a number from 0.000001 to 1000000"


def _fair_share(entry: DocumentEntry, _planner: PlannerSettings) -> FairShareSettings:
    """Return the fair-share settings; an error about two lines names both."""
    readers: Mapping[str, Reader] = {
        "classes": _classes,
        "leaves": lambda leaves: leaves.word(*MEMBERS),
        **dict.fromkeys(("tree", "queues", "default"), lambda part: part),
        "partition": lambda partition: partition.text(UUID, "the uuid of an aggregate").lower(),
        "keep_s": DocumentEntry.number,
    }
    values = entry.read_keys(readers)
    forms = ("tree", "queues", "default")
    parts: dict[str, DocumentEntry] = {key: values.pop(key) for key in forms if key in values}
    settings = FairShareSettings(**values)
    return replace(settings, queues=_queues(entry, parts, settings))


def _classes(entry: DocumentEntry) -> tuple[str, ...]:
    names: list[str] = []
    for item in entry.items():
        names.append(item.text(CLASS, "a resource class such as VCPU"))
        if names.count(names[-1]) > 1:
            raise item.wrong("each class once")
    if not names:
        raise entry.wrong("a list of at least one resource class")
    return tuple(names)


def _queues(entry: DocumentEntry, parts: Mapping[str, DocumentEntry], shares: FairShareSettings) -> QueueTree:
    """Return the tree from lines of both forms, which may be mixed."""
    lines = [
        *([(line, _of_tree(line, shares)) for line in parts["tree"].mapping().values()] if "tree" in parts else ()),
        *([(line, _of_volcano(line, shares)) for line in parts["queues"].items()] if "queues" in parts else ()),
    ]
    default = parts["default"].text(_PATH, _A_PATH) if "default" in parts else None
    try:
        return tree_of([queue for _entry, queue in lines], default)
    except Contradiction as contradiction:
        # A default queue that no line mentions comes last.
        written = [*[line for line, _queue in lines], parts.get("default", entry)]
        both = [written[contradiction.first], written[contradiction.second]]
        first, second = sorted(both, key=lambda line: line.line)
        where = f"{second.file}, lines {first.line} and {second.line}"
        raise ConfigurationError(f"{where}: {second.path[0]}: {contradiction}.") from contradiction


def _of_tree(entry: DocumentEntry, shares: FairShareSettings) -> Queue:
    """Return a line of the form ``root/eng/dev: {weight: 2, projects: [...]}``."""
    entry.check_name(_PATH, _A_PATH)
    parts, path = entry.fields("weight", MEMBERS[shares.leaves], *_PROMISES), entry.path[-1]
    weights: list[Number | None] = [None] * len(path.split(SEPARATOR))
    if "weight" in parts:
        weights[-1] = parts["weight"].number(_A_WEIGHT)
        _check_weight(parts["weight"], weights[-1])
    return Queue(path, tuple(weights), _members(parts, shares), _capacity(parts, shares))


def _of_volcano(entry: DocumentEntry, shares: FairShareSettings) -> Queue:
    """Return a line of the form ``{hierarchy: root/eng/prod, weights: 1/2/8, projects: [...]}``."""
    parts = entry.fields("hierarchy", "weights", MEMBERS[shares.leaves], *_PROMISES, required=["hierarchy", "weights"])
    path = parts["hierarchy"].text(_PATH, _A_PATH)
    count = len(path.split(SEPARATOR))
    expected = f"{count} weights, one for each name of {path}, such as {'/'.join(['1'] * count)}"
    texts = parts["weights"].text(expected=expected).split(SEPARATOR)
    if len(texts) != count or not all(re.fullmatch(r"[0-9]+(\.[0-9]+)?", text) for text in texts):
        raise parts["weights"].wrong(expected)
    weights = tuple(float(text) if "." in text else int(text) for text in texts)
    for weight in weights:
        _check_weight(parts["weights"], weight)
    return Queue(path, weights, _members(parts, shares) or (), _capacity(parts, shares))


def _members(parts: Mapping[str, DocumentEntry], shares: FairShareSettings) -> tuple[str, ...] | None:
    entry = parts.get(MEMBERS[shares.leaves])
    return None if entry is None else entry.texts(expected="an id or a name")


def _capacity(parts: Mapping[str, DocumentEntry], shares: FairShareSettings) -> QueueCapacity:
    """Return the promises of a queue; each must be at least as large as the one before it."""
    capacity: dict[str, dict[str, int]] = {}
    for promise in _PROMISES:
        capacity[promise] = {}
        for name, item in parts[promise].mapping().items() if promise in parts else ():
            if name not in shares.classes:
                raise item.misnamed(f"a class that counts: {', '.join(shares.classes)}")
            capacity[promise][name] = item.whole_number()
            least = max(amounts.get(name, 0) for amounts in capacity.values())
            if capacity[promise][name] < least:
                raise item.wrong(f"a number from {least} up, as guarantee, deserved and limit follow each other")
    return QueueCapacity(**capacity)


def _check_weight(entry: DocumentEntry, weight: Number | None) -> None:
    if weight is not None and not LEAST_WEIGHT <= exact(weight) <= GREATEST_WEIGHT:
        raise entry.wrong(_A_WEIGHT)


SECTIONS: Mapping[str, Callable[[DocumentEntry, PlannerSettings], Any]] = {
    "levels": _levels,
    "devices": _devices,
    "profiles": read_profiles,
    "default_profile": lambda entry, planner: entry.word(*planner.profiles),
    "fair_share": _fair_share,
    "exclusive": _exclusive,
    "flavor_root_required": lambda entry, _planner: entry.texts("!?[A-Z0-9_]{1,255}", "a trait such as OWNER_NOVA"),
    "flavors": _flavors,
    "private_flavors": _private_flavors,
    "aggregates": _aggregates,
    "names": _names,
}
"""The reader of each section, which may refer to what those before it have read."""


def load_planner(path: Path | None) -> PlannerSettings:
    """Return the planner file's settings, with defaults for what it omits; ConfigurationError in one sentence."""
    document, planner = read_document(path) if path else None, PlannerSettings()
    entries = document.fields(*SECTIONS) if document else {}
    for name, read in SECTIONS.items():
        if name in entries:
            planner = replace(planner, **{name: read(entries[name], planner)})
    if planner.default_profile not in planner.profiles:
        raise entries["profiles"].wrong("a profile named default, or the key default_profile beside it")
    return planner


def planner_file(source: "ConfigOpts") -> Path | None:
    """Return the path of the planner file, or None if there is none.

    It is searched for in the directories of ``--config-dir`` and next to the configuration files, the last one first.
    If no configuration file was read, only ``[ranking] planner_file`` can name it.
    """
    name = source.ranking.planner_file
    places = [*(Path(file).parent for file in source.config_file), *map(Path, source.config_dir)]
    for place in reversed(places):
        # A dangling link counts as present: failing to read it is better than silently using defaults.
        if os.path.lexists(place / (name or PLANNER_FILE)):
            return place / (name or PLANNER_FILE)
    return Path(name) if name else None
