"""Translation of Volcano's files to planner files: scheduler configurations, and queues.

After Volcano's documents on resource-strategy-fit, whose defaults these are, on the plugin proportional, and on
hierarchical queues (HDRF).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import ceil
from typing import Any

import yaml

from placement.allocators.entries import resource_class
from placement.domain.device_types import DeviceSettings
from placement.domain.koordinator import type_of
from placement.domain.quantities import quantity_in_manifest

PROFILE = "volcano"
HIERARCHY, WEIGHTS = "volcano.sh/hierarchy", "volcano.sh/hierarchy-weights"
GIGABYTE_IN_MB = 10**9 / 2**20
"""Volcano counts memory proportions in units of 10^9 bytes, MEMORY_MB in units of 2^20."""

YamlMapping = Mapping[str, Any]


class NotFromVolcano(ValueError):
    """A document is neither a scheduler configuration nor has queues."""


@dataclass(slots=True)
class ImportedPlanner:
    """A planner file, section by section, and what could not be translated."""

    sections: dict[str, Any] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)

    def text(self) -> str:
        """Return the file, preceded by comments on what it leaves out."""
        comments = [f"# Left out: {one}.\n" for one in dict.fromkeys(self.left_out)]
        return "".join(comments) + yaml.safe_dump(self.sections, sort_keys=False, default_flow_style=None, width=110)


def translated_from_volcano(text: str, devices: DeviceSettings) -> ImportedPlanner:
    """Translate Volcano documents to a planner file.

    Raises:
        NotFromVolcano: a document is not one of Volcano's, or not YAML.
    """
    try:
        return _translated([one for one in yaml.safe_load_all(text) if one is not None], devices)
    except yaml.YAMLError as wrong:
        raise NotFromVolcano(f"This is not YAML: {' '.join(str(wrong).split())}") from wrong
    except RecursionError:
        raise NotFromVolcano("This is not YAML: it nests too deeply.") from None
    except (AttributeError, TypeError) as wrong:
        # A value is not the mapping or list that Volcano expects there.
        raise NotFromVolcano(f"This is not written as Volcano has it: {wrong}.") from wrong


def _translated(documents: Iterable[Any], devices: DeviceSettings) -> ImportedPlanner:
    found = ImportedPlanner()
    translator = _Translator(devices, found)
    queues: list[YamlMapping] = []
    for document in documents:
        for one in _parts(document):
            if one.get("kind") == "Queue":
                queues.append(one)
            elif "tiers" in one or "actions" in one:
                translator.configuration(one)
            else:
                raise NotFromVolcano("This is neither a scheduler configuration (actions, tiers) nor a Queue.")
    if queues:
        translator.queues(queues)
    return found


def _parts(document: Any) -> Iterator[YamlMapping]:
    """Yield the parts of a document: the items of a list, the configurations in a ConfigMap."""
    if not isinstance(document, Mapping):
        raise NotFromVolcano("This is neither a scheduler configuration (actions, tiers) nor a Queue.")
    if document.get("kind") in {"List", "QueueList"}:
        for item in document.get("items") or ():
            yield from _parts(item)
    elif document.get("kind") == "ConfigMap":
        for text in (document.get("data") or {}).values():
            yield from _parts(yaml.safe_load(text))
    else:
        yield document


class _Translator:
    """Adds documents to a translation."""

    def __init__(self, devices: DeviceSettings, found: ImportedPlanner) -> None:
        self._devices = devices
        self._found = found

    def configuration(self, document: YamlMapping) -> None:
        """Add a scheduler configuration."""
        if "actions" in document:
            self._leave_out("actions: the planner has no cycle of actions")
        for tier in document.get("tiers") or ():
            for plugin in tier.get("plugins") or ():
                if plugin.get("name") == "resource-strategy-fit":
                    profile = self._profile(_nested(plugin.get("arguments") or {}))
                    self._found.sections |= {"default_profile": PROFILE, "profiles": {PROFILE: profile}}
                else:
                    self._leave_out(f"the plugin {plugin.get('name')}")

    def _profile(self, arguments: YamlMapping) -> dict[str, Any]:
        weight, resources = arguments.get("resourceStrategyFitWeight", 10), arguments.get("resources")
        profile: dict[str, Any] = {}
        if resources:
            preferences = {
                name: {"type": each.get("type", "LeastAllocated"), "weight": each.get("weight", 1)}
                for name, each in self._by_class(resources)
            }
            profile["fit"] = {"weight": weight, "resources": preferences}
        sra, proportional = arguments.get("sra") or {}, arguments.get("proportional") or {}
        if _is_on(sra):
            profile["sra"] = self._sra(sra)
        if _is_on(proportional):
            profile["proportional"] = self._proportional(proportional)
        for key in arguments.keys() - {"resourceStrategyFitWeight", "resources", "sra", "proportional"}:
            self._leave_out(f"the argument {key} of resource-strategy-fit")
        return profile

    def _sra(self, sra: YamlMapping) -> dict[str, Any]:
        weights = sra.get("resourceWeight") or {}
        resources = {name: weights.get(name, 1) for name in _listed(sra.get("resources"))}
        return {"weight": sra.get("weight", 10), "mode": "upstream", "resources": dict(self._by_class(resources))}

    def _proportional(self, proportional: YamlMapping) -> dict[str, Any]:
        ratios = proportional.get("resourceProportion") or {}
        reserve = {
            primary: {
                "VCPU": _ratio(ratios.get(f"{written}.cpu")),
                "MEMORY_MB": _ratio(ratios.get(f"{written}.memory")) * GIGABYTE_IN_MB,
            }
            for primary, written in self._by_class({name: name for name in _listed(proportional.get("resources"))})
        }
        return {"mode": "filter", "exempt": "all", "reserve": reserve}

    def _by_class(self, entries: YamlMapping) -> Iterator[tuple[str, Any]]:
        """Yield entries by the resource class that their names mean; if two mean the same class, the first wins."""
        seen = set()
        for name, each in entries.items():
            try:
                found = self._class(name)
            except ValueError as wrong:
                # Volcano ignores such patterns, too.
                self._leave_out(f"{name}: {wrong}")
                continue
            if found in seen:
                self._leave_out(f"{name}: {found} is written already")
                continue
            seen.add(found)
            yield found, each

    def _class(self, name: str) -> str:
        if name in self._devices.host:
            return self._devices.host[name]
        if (kind := type_of(name, self._devices)) is not None:
            return self._devices.types[kind].resource_class
        return resource_class(name)

    def queues(self, queues: Iterable[YamlMapping]) -> None:
        """Add queues: those with a hierarchy by their paths, the others directly below the root."""
        classes: dict[str, None] = {}
        lines: list[dict[str, Any]] = []
        for queue in queues:
            metadata, spec = queue.get("metadata") or {}, queue.get("spec") or {}
            name, annotations = metadata.get("name", ""), metadata.get("annotations") or {}
            weight = spec.get("weight", 1)
            line = {
                "hierarchy": annotations.get(HIERARCHY, f"root/{name}"),
                "weights": annotations.get(WEIGHTS, f"1/{weight}"),
                "projects": [],
            }
            guarantee = (spec.get("guarantee") or {}).get("resource")
            for key, amounts in (
                ("guarantee", guarantee),
                ("deserved", spec.get("deserved")),
                ("limit", spec.get("capability")),
            ):
                if said := self._amounts(name, amounts or {}):
                    line[key] = said
                    classes.update(dict.fromkeys(said))
            for key in sorted(spec.keys() - {"weight", "guarantee", "deserved", "capability"}):
                self._leave_out(f"spec.{key} of the queue {name}")
            lines.append(line)
        self._leave_out("who is in the queues: write the ids of projects under projects")
        section: dict[str, Any] = {
            "classes": ["VCPU", "MEMORY_MB", *[c for c in classes if c not in {"VCPU", "MEMORY_MB"}]]
        }
        self._found.sections["fair_share"] = {**section, "queues": lines}

    def _amounts(self, queue: str, amounts: YamlMapping) -> dict[str, int]:
        found = {}
        for name, quantity in amounts.items():
            try:
                resource = self._class(name)
                found[resource] = ceil(quantity_in_manifest(name, resource, quantity))
            except ValueError as wrong:
                self._leave_out(f"{name} of the queue {queue}: {wrong}")
        return found

    def _leave_out(self, what: str) -> None:
        self._found.left_out.append(what.rstrip("."))


def _nested(arguments: YamlMapping) -> dict[str, Any]:
    """Return arguments with dotted keys (``sra.enable``) converted to nested ones."""
    found: dict[str, Any] = {}
    for key, value in arguments.items():
        policy, _, rest = str(key).partition(".")
        if policy not in {"sra", "proportional"} or not rest:
            found[key] = {**found.get(key, {}), **value} if isinstance(value, Mapping) and key in found else value
            continue
        inner = found.setdefault(policy, {})
        group, _, name = rest.partition(".")
        if group in {"resourceWeight", "resourceProportion"} and name:
            inner.setdefault(group, {})[name] = value
        else:
            inner[rest] = value
    return found


def _is_on(policy: YamlMapping) -> bool:
    return policy.get("enable") in (True, "true")


def _listed(names: Any) -> list[str]:
    """Return names given as a list or as comma-separated text."""
    parts = names.split(",") if isinstance(names, str) else names or ()
    return [str(part).strip() for part in parts if str(part).strip()]


def _ratio(value: Any) -> float:
    """Return a ratio; missing or negative ones are 1, as in Volcano."""
    number = float(value) if isinstance(value, int | float) or str(value).replace(".", "", 1).isdigit() else -1
    return (int(number) if number == int(number) else number) if number >= 0 else 1
