"""The sections ``profiles`` and ``default_profile``: named orders of candidates.

A part that a profile omits is off; ``{}`` gives it the library's defaults.
"""

import json
import logging
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import yaml

from placement.allocators import InvalidEntry, Number, resource_class
from placement.allocators.fragmentation.hosts import DeviceTask, ExpectedWork, FragmentationSettings
from placement.allocators.ranking_profile import RankingProfile
from placement.allocators.strategy_fit import Fit, Preference, Profile, Proportional, Sra
from placement.domain.device_types import DeviceSettings
from placement.settings.planner.document import DocumentEntry, Reader
from placement.settings.planner.values import PlannerSettings

LOG = logging.getLogger(__name__)

INLINE = "of the request"
"""The name of a profile that a request defines inline; no profile in the file can have it."""

DEFAULT_COMPACTNESS = RankingProfile().compactness

NAME = "[A-Za-z0-9][A-Za-z0-9._-]{0,254}"


def read_profiles(entry: DocumentEntry, planner: PlannerSettings) -> Mapping[str, RankingProfile]:
    """Return name -> profile."""
    return MappingProxyType(
        {name: _profile(name, profile, planner.devices) for name, profile in entry.mapping(at_least=1).items()}
    )


def inline_profile(document: Mapping[str, Any], devices: DeviceSettings) -> RankingProfile:
    """Return a profile that a request defines inline, with the file's keys except fragmentation."""
    node = yaml.compose(json.dumps(document), Loader=yaml.SafeLoader)
    assert node is not None
    return _profile(INLINE, DocumentEntry("profile", (), node, 1), devices, is_named=False)


def _profile(name: str, entry: DocumentEntry, devices: DeviceSettings, *, is_named: bool = True) -> RankingProfile:
    strategies: Mapping[str, Reader] = {
        "fit": lambda fit: _fit(fit, devices),
        "sra": lambda sra: _sra(sra, devices),
        "proportional": lambda proportional: _proportional(proportional, devices),
    }
    own: dict[str, Reader] = {
        "compactness": lambda part: part.read_keys({"weight": DocumentEntry.number}).get("weight", DEFAULT_COMPACTNESS)
    }
    if is_named:
        entry.check_name(NAME, "the name of a profile: letters, digits, dots, dashes and underscores")
        own["fragmentation"] = read_fragmentation
    values = {"compactness": 0} | entry.read_keys({**strategies, **own})
    strategy = Profile(**{name: values.pop(name, None) for name in strategies})
    return RankingProfile(name=name, strategy=strategy, **values)


def _fit(entry: DocumentEntry, devices: DeviceSettings) -> Fit:
    readers: Mapping[str, Reader] = {
        "type": lambda type_: type_.word("MostAllocated", "LeastAllocated"),
        "weight": DocumentEntry.number,
    }

    def preferences(resources: DocumentEntry) -> dict[str, Preference]:
        entries = _by_class(resources, devices)
        return {name: Preference(**inner.read_keys(readers, required=["type"])) for name, inner in entries.items()}

    return Fit(**entry.read_keys({"weight": DocumentEntry.number, "resources": preferences}))


def _sra(entry: DocumentEntry, devices: DeviceSettings) -> Sra:
    def weights(resources: DocumentEntry) -> dict[str, Number]:
        return {name: weight.number() for name, weight in _by_class(resources, devices).items()}

    readers: Mapping[str, Reader] = {
        "weight": DocumentEntry.number,
        "mode": lambda mode: mode.word("unneeded", "upstream"),
        "resources": weights,
    }
    return Sra(**entry.read_keys(readers, required=["resources"]))


def _proportional(entry: DocumentEntry, devices: DeviceSettings) -> Proportional:
    def reserves(reserve: DocumentEntry) -> dict[str, dict[str, Number]]:
        kept: dict[str, dict[str, Number]] = {}
        for primary, inner in _by_class(reserve, devices).items():
            kept[primary] = {}
            for name, amount in _by_class(inner, devices).items():
                kept[primary][name] = amount.number()
                try:
                    Proportional({primary: {name: kept[primary][name]}})
                except InvalidEntry as wrong:
                    raise amount.misnamed(wrong.expected) from wrong
        return kept

    readers: Mapping[str, Reader] = {
        "exempt": lambda exempt: exempt.word("all", "own"),
        "mode": lambda mode: mode.word("last", "filter"),
        "reserve": reserves,
    }
    return Proportional(**entry.read_keys(readers, required=["reserve"]))


def _by_class(entry: DocumentEntry, devices: DeviceSettings) -> dict[str, DocumentEntry]:
    """Return the entries under resource classes, families and other names, keyed by the classes that these mean.

    That is what ``devices`` says, else what the name is or is translated to.
    """
    entries: dict[str, DocumentEntry] = {}
    for key, inner in entry.mapping(at_least=1).items():
        try:
            name = devices.class_of(key) or resource_class(key)
            if "/" in key and name != resource_class(key) and entry.path[0] == "profiles":
                LOG.warning(
                    "%s, line %d: %s is %s, as under devices; write %s if inventories have that.",
                    *(inner.file, inner.line, key, name, resource_class(key)),
                )
        except ValueError as wrong:
            raise inner.misnamed("a resource class or a family such as CUSTOM_GPU_*") from wrong
        if name in entries:
            raise inner.misnamed(f"one entry for {name}")
        entries[name] = inner
    return entries


CLASS = "[A-Z0-9_]+"
TRAITS = r"[A-Z0-9_]+\*?"


def read_fragmentation(entry: DocumentEntry) -> FragmentationSettings:
    """Return how to judge devices."""
    readers: Mapping[str, Reader] = {
        "weight": DocumentEntry.number,
        "devices": lambda class_: class_.text(CLASS, "a resource class"),
        "size": DocumentEntry.count,
        "kinds": lambda traits: traits.texts(TRAITS, "a trait, or a family such as CUSTOM_GPU_*"),
        "beside": lambda classes: classes.texts(CLASS, "a resource class"),
        "flavors": lambda flavors: flavors.mapping(at_least=1),
        "refresh_s": DocumentEntry.number,
    }
    values = entry.read_keys(readers, required=["devices"])
    flavors: dict[str, DocumentEntry] = values.pop("flavors", {})
    bare = _checked(entry, values)
    works = {name: _flavor(flavor, bare) for name, flavor in flavors.items()}
    return _checked(entry, {**values, "flavors": works})


def _checked(entry: DocumentEntry, values: dict[str, Any]) -> FragmentationSettings:
    try:
        return FragmentationSettings(**values)
    except InvalidEntry as wrong:
        for key in wrong.path:  # The entry at that path, or its nearest existing ancestor, is wrong.
            if (inner := entry.mapping().get(key)) is None:
                break
            entry = inner
        raise entry.wrong(wrong.expected) from wrong


def _flavor(entry: DocumentEntry, settings: FragmentationSettings) -> ExpectedWork:
    parts = entry.fields("weight", "devices", "share", "kinds", "resources", required=["resources"])
    devices = parts["devices"].whole_number() if "devices" in parts else 0
    share = parts["share"].whole_number(least=1) if "share" in parts else settings.size if devices else 0
    kinds = parts["kinds"].texts(CLASS, "a trait") if "kinds" in parts else ()
    amounts = {name: amount.whole_number() for name, amount in parts["resources"].mapping().items()}
    if share and not devices:
        raise parts["share"].misnamed("the key devices beside it")
    task = DeviceTask(amounts, devices, share, frozenset(kinds))
    return ExpectedWork(task, **({"weight": parts["weight"].number()} if "weight" in parts else {}))
