"""The sections ``profiles`` and ``default_profile``: named orders of candidates.

A part that a profile omits is off; ``{}`` gives it the library's defaults.
"""

import json
import logging
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, cast

import yaml

from placement.allocators.entries import InvalidEntry, Number, resource_class
from placement.allocators.ranking_profile import RankingProfile
from placement.allocators.strategy_fit.profile import (
    Exemption,
    Failing,
    Fit,
    Preference,
    Profile,
    Proportional,
    ScarceMode,
    Sra,
    Strategy,
)
from placement.domain.device_types import DeviceSettings
from placement.settings.planner.document import DocumentEntry
from placement.settings.planner.fragmentation import read_fragmentation
from placement.settings.planner.values import PlannerSettings

LOG = logging.getLogger(__name__)

INLINE = "of the request"
"""The name of a profile that a request defines inline; no profile in the file can have it."""

NAME = "[A-Za-z0-9][A-Za-z0-9._-]{0,254}"


def read_profiles(entry: DocumentEntry, known: PlannerSettings) -> Mapping[str, RankingProfile]:
    """Return name -> profile.

    Raises:
        ConfigurationError: an entry is invalid; the message names its line.
    """
    return MappingProxyType(
        {name: _profile(name, each, known.devices) for name, each in entry.mapping(at_least=1).items()}
    )


def read_default_profile(entry: DocumentEntry, known: PlannerSettings) -> str:
    """Return the name of the profile in force.

    Raises:
        ConfigurationError: there is no such profile.
    """
    return entry.word(*known.profiles)


def inline_profile(document: Mapping[str, Any], devices: DeviceSettings) -> RankingProfile:
    """Return a profile that a request defines inline, with the file's keys except fragmentation.

    Raises:
        ConfigurationError: an entry is invalid; the message names its key.
    """
    node = yaml.compose(json.dumps(document), Loader=yaml.SafeLoader)
    assert node is not None
    entry = DocumentEntry("profile", (), node, 1)
    entry.fields("fit", "sra", "proportional", "compactness")
    return _profile(INLINE, entry, devices, is_named=False)


def _profile(name: str, entry: DocumentEntry, devices: DeviceSettings, *, is_named: bool = True) -> RankingProfile:
    if is_named and not entry.is_named_like(NAME):
        raise entry.misnamed("the name of a profile: letters, digits, dots, dashes and underscores")
    parts = entry.fields("fit", "sra", "proportional", "compactness", "fragmentation")
    return RankingProfile(
        name=name,
        strategy=Profile(
            fit=_fit(parts["fit"], devices) if "fit" in parts else None,
            sra=_sra(parts["sra"], devices) if "sra" in parts else None,
            proportional=_proportional(parts["proportional"], devices) if "proportional" in parts else None,
        ),
        compactness=_compactness(parts["compactness"]) if "compactness" in parts else 0,
        fragmentation=read_fragmentation(parts["fragmentation"]) if "fragmentation" in parts else None,
    )


def _fit(entry: DocumentEntry, devices: DeviceSettings) -> Fit:
    parts = entry.fields("weight", "resources")
    given: dict[str, Any] = _weight(parts)
    if "resources" in parts:
        given["resources"] = {name: _preference(each) for name, each in _by_class(parts["resources"], devices).items()}
    return Fit(**given)


def _preference(entry: DocumentEntry) -> Preference:
    parts = entry.fields("type", "weight", required=["type"])
    type_ = cast("Strategy", parts["type"].word("MostAllocated", "LeastAllocated"))
    return Preference(type_, **_weight(parts))


def _sra(entry: DocumentEntry, devices: DeviceSettings) -> Sra:
    parts = entry.fields("weight", "mode", "resources", required=["resources"])
    given: dict[str, Any] = _weight(parts)
    if "mode" in parts:
        given["mode"] = cast("ScarceMode", parts["mode"].word("unneeded", "upstream"))
    return Sra({name: each.number() for name, each in _by_class(parts["resources"], devices).items()}, **given)


def _proportional(entry: DocumentEntry, devices: DeviceSettings) -> Proportional:
    parts = entry.fields("exempt", "mode", "reserve", required=["reserve"])
    given: dict[str, Any] = {}
    if "exempt" in parts:
        given["exempt"] = cast("Exemption", parts["exempt"].word("all", "own"))
    if "mode" in parts:
        given["mode"] = cast("Failing", parts["mode"].word("last", "filter"))
    entries = _by_class(parts["reserve"], devices)
    reserve = {primary: _secondaries(primary, _by_class(each, devices)) for primary, each in entries.items()}
    return Proportional(reserve, **given)


def _secondaries(primary: str, entries: Mapping[str, DocumentEntry]) -> dict[str, Number]:
    secondaries: dict[str, Number] = {}
    for name, each in entries.items():
        secondaries[name] = each.number()
        try:
            Proportional({primary: {name: secondaries[name]}})
        except InvalidEntry as wrong:
            raise each.misnamed(wrong.expected) from wrong
    return secondaries


def _compactness(entry: DocumentEntry) -> Number:
    return _weight(entry.fields("weight")).get("weight", RankingProfile().compactness)


def _weight(parts: Mapping[str, DocumentEntry]) -> dict[str, Number]:
    """Return the weight as a keyword argument, if given, so that otherwise the library's default applies."""
    return {"weight": parts["weight"].number()} if "weight" in parts else {}


def _by_class(entry: DocumentEntry, devices: DeviceSettings) -> dict[str, DocumentEntry]:
    """Return the entries under resource classes, families and other names, keyed by the classes that these mean."""
    entries: dict[str, DocumentEntry] = {}
    for key, each in entry.mapping(at_least=1).items():
        try:
            name = _class_of(key, each, devices)
        except ValueError as wrong:
            raise each.misnamed("a resource class or a family such as CUSTOM_GPU_*") from wrong
        if name in entries:
            raise each.misnamed(f"one entry for {name}")
        entries[name] = each
    return entries


def _class_of(name: str, entry: DocumentEntry, devices: DeviceSettings) -> str:
    """Return the class or family that a name means: what ``devices`` says, else what it is or is translated to."""
    if (known := devices.class_of(name)) is None:
        return resource_class(name)
    if "/" in name and known != resource_class(name) and entry.path[0] == "profiles":
        LOG.warning(
            "%s, line %d: %s is %s, as under devices; write %s if inventories have that.",
            *(entry.file, entry.line, name, known, resource_class(name)),
        )
    return known
