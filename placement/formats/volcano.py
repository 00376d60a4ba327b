"""Translation of Volcano's files to planner files: scheduler configurations, and queues.

After Volcano's documents on resource-strategy-fit, whose defaults these are, on the plugin proportional, on
hierarchical queues (HDRF), and on the plugin capacity.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from placement.allocators import resource_class
from placement.domain.device_types import DeviceSettings
from placement.domain.quantities import quantity_in_manifest

PLUGIN, PROFILE, ROOT, HIERARCHY = "resource-strategy-fit", "volcano", "root", "volcano.sh/hierarchy"
_PROMISES = (("guarantee", "guarantee"), ("deserved", "deserved"), ("limit", "capability"))
"""What a queue has in the planner file, and in Volcano's."""
WEIGHTS = f"{HIERARCHY}-weights"
GIGABYTE_IN_MB = 10**9 / 2**20
"""Volcano counts memory proportions in units of 10^9 bytes, MEMORY_MB in units of 2^20."""

NEITHER = "This is neither a scheduler configuration (actions, tiers) nor a Queue."

YamlMapping = Mapping[str, Any]


class NotFromVolcano(ValueError):
    """A document is neither a scheduler configuration nor has queues, or Volcano would refuse it."""


@dataclass(slots=True)
class ImportedPlanner:
    """A planner file, section by section, and what could not be translated."""

    sections: dict[str, Any] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)

    def text(self) -> str:
        """Return the file, preceded by comments on what it leaves out."""
        comments = [f"# Left out: {entry}.\n" for entry in dict.fromkeys(self.left_out)]
        return "".join(comments) + yaml.safe_dump(self.sections, sort_keys=False, default_flow_style=None, width=110)


def translated_from_volcano(text: str, devices: DeviceSettings) -> ImportedPlanner:
    """Translate Volcano documents to a planner file; NotFromVolcano if one is not Volcano's, or not YAML."""
    try:
        return _translated([document for document in yaml.safe_load_all(text) if document is not None], devices)
    except yaml.YAMLError as wrong:
        raise NotFromVolcano(f"This is not YAML: {' '.join(str(wrong).split())}") from wrong
    except RecursionError:
        raise NotFromVolcano("This is not YAML: it nests too deeply.") from None
    except (AttributeError, TypeError) as wrong:
        # A value is not the mapping or list that Volcano expects there.
        raise NotFromVolcano(f"This is not written as Volcano has it: {wrong}.") from wrong


def profile_of_arguments(pasted: YamlMapping, devices: DeviceSettings) -> dict[str, Any]:
    """Return the profile that arguments of Volcano's scheduler, or what contains them, mean; empty if there is none."""
    plugin = {"name": PLUGIN, "arguments": pasted.get("arguments", pasted)}
    document = pasted if "tiers" in pasted else {"tiers": [{"plugins": [plugin]}]}
    try:
        profile: dict[str, Any] = _translated([document], devices).sections["profiles"][PROFILE]
    except (AttributeError, KeyError, TypeError, ValueError):
        return {}
    return profile


def _translated(documents: Iterable[Any], devices: DeviceSettings) -> ImportedPlanner:
    translator = _Translator(devices)
    queues: list[YamlMapping] = []
    for part in [part for document in documents for part in _parts(document)]:
        if part.get("kind") == "Queue":
            queues.append(part)
        elif "tiers" in part or "actions" in part:
            translator.configuration(part)
        else:
            raise NotFromVolcano(NEITHER)
    if queues:
        translator.queues(queues)
    return translator.imported


def _parts(document: Any) -> Iterator[YamlMapping]:
    """Yield the parts of a document: the items of a list, the configurations in a ConfigMap."""
    if not isinstance(document, Mapping):
        raise NotFromVolcano(NEITHER)
    if document.get("kind") in {"List", "QueueList"}:
        for item in document.get("items") or ():
            yield from _parts(item)
    elif document.get("kind") == "ConfigMap":
        for text in (document.get("data") or {}).values():
            yield from _parts(yaml.safe_load(text))
    else:
        yield document


class _Translator:
    """Translates documents one after another."""

    def __init__(self, devices: DeviceSettings) -> None:
        self._devices = devices
        self.imported = ImportedPlanner()

    def configuration(self, document: YamlMapping) -> None:
        """Add a scheduler configuration."""
        if "actions" in document:
            self._leave_out("actions: the planner has no cycle of actions")
        for tier in document.get("tiers") or ():
            for plugin in tier.get("plugins") or ():
                if plugin.get("name") == PLUGIN:
                    profile = self._profile(_nested(plugin.get("arguments") or {}))
                    self.imported.sections |= {"default_profile": PROFILE, "profiles": {PROFILE: profile}}
                else:
                    self._leave_out(f"the plugin {plugin.get('name')}")

    def _profile(self, arguments: YamlMapping) -> dict[str, Any]:
        weight, resources = arguments.get("resourceStrategyFitWeight", 10), arguments.get("resources")
        profile: dict[str, Any] = {}
        if resources:
            preferences = {
                name: {"type": entry.get("type", "LeastAllocated"), "weight": entry.get("weight", 1)}
                for name, entry in self._by_class(resources)
            }
            profile["fit"] = {"weight": weight, "resources": preferences}
        sra, proportional = arguments.get("sra") or {}, arguments.get("proportional") or {}
        if sra.get("enable") in (True, "true"):
            weights = sra.get("resourceWeight") or {}
            scarce = {name: weights.get(name, 1) for name in _listed(sra.get("resources"))}
            by_class = dict(self._by_class(scarce))
            profile["sra"] = {"weight": sra.get("weight", 10), "mode": "upstream", "resources": by_class}
        if proportional.get("enable") in (True, "true"):
            profile["proportional"] = self._proportional(proportional)
        for key in arguments.keys() - {"resourceStrategyFitWeight", "resources", "sra", "proportional"}:
            self._leave_out(f"the argument {key} of resource-strategy-fit")
        return profile

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
        classes = set()
        for name, entry in entries.items():
            try:
                resource = self._devices.class_of(name) or resource_class(name)
            except ValueError as wrong:
                # Volcano ignores such patterns, too.
                self._leave_out(f"{name}: {wrong}")
                continue
            if resource in classes:
                self._leave_out(f"{name}: {resource} is written already")
                continue
            classes.add(resource)
            yield resource, entry

    def queues(self, queues: Iterable[YamlMapping]) -> None:
        """Add queues, at the places that their parents or their hierarchies give them."""
        tree = _VolcanoQueues(queues)
        classes: dict[str, None] = dict.fromkeys(("VCPU", "MEMORY_MB"))
        lines: dict[str, dict[str, Any]] = {path: {"weight": weight} for path, weight in tree.weights.items()}
        for name, spec in tree.specs.items():
            promises = self._promises(name, spec)
            for key in sorted(spec.keys() - {"weight", "parent", *dict(_PROMISES).values()}):
                self._leave_out(f"spec.{key} of the queue {name}")
            if (path := tree.paths[name]) == ROOT:
                self.imported.left_out += [f"{key} of the queue {ROOT}: all that the cloud has" for key in promises]
                continue
            lines[path] |= promises
            classes |= dict.fromkeys(resource for amounts in promises.values() for resource in amounts)
        for path, line in lines.items():
            if not any(inner.startswith(f"{path}/") for inner in lines):
                line["projects"] = []
        self._leave_out("who is in the queues: write the ids of projects under projects")
        self.imported.sections["fair_share"] = {"classes": list(classes), "tree": lines}

    def _promises(self, queue: str, spec: YamlMapping) -> dict[str, dict[str, int]]:
        """Return what a queue is guaranteed, deserves, and may have at most."""
        promises = {}
        for key, written in _PROMISES:
            amounts = spec.get(written) or {}
            if translated := self._amounts(queue, amounts.get("resource") or {} if key == "guarantee" else amounts):
                promises[key] = translated
        _check_promises(queue, promises)
        return promises

    def _amounts(self, queue: str, amounts: YamlMapping) -> dict[str, int]:
        by_class = {}
        for name, quantity in amounts.items():
            try:
                resource = self._devices.class_of(name) or resource_class(name)
                by_class[resource] = math.ceil(quantity_in_manifest(name, resource, quantity))
            except ValueError as wrong:
                self._leave_out(f"{name} of the queue {queue}: {wrong}")
        return by_class

    def _leave_out(self, entry: str) -> None:
        self.imported.left_out.append(entry.rstrip("."))


def _check_promises(queue: str, promises: Mapping[str, Mapping[str, int]]) -> None:
    """Refuse a queue of which Volcano refuses the amounts."""
    words = dict(_PROMISES)
    for smaller, larger in (("guarantee", "deserved"), ("deserved", "limit"), ("guarantee", "limit")):
        for resource, amount in promises.get(smaller, {}).items():
            bound = promises.get(larger, {}).get(resource, amount)
            if amount > bound:
                text = f"a {words[smaller]} of {amount} {resource}, above its {words[larger]} of {bound}"
                raise NotFromVolcano(f"The queue {queue} has {text}.")


class _VolcanoQueues:
    """Volcano's queues as a tree: by the annotations of hierarchical DRF, or by ``spec.parent``."""

    def __init__(self, queues: Iterable[YamlMapping]) -> None:
        self.specs: dict[str, YamlMapping] = {}
        annotations: dict[str, YamlMapping] = {}
        for queue in queues:
            metadata = queue.get("metadata") or {}
            name = str(metadata.get("name", ""))
            if name in self.specs:
                raise NotFromVolcano(f"The queue {name} is written twice.")
            self.specs[name], annotations[name] = queue.get("spec") or {}, metadata.get("annotations") or {}
        self.paths = {
            name: annotations[name].get(HIERARCHY) or "/".join(self._names_to(name, ())) for name in self.specs
        }
        self.weights: dict[str, float] = {}
        names: dict[str, str] = {}
        for name, path in self.paths.items():
            if names.setdefault(path, name) != name:
                raise NotFromVolcano(f"The queues {names[path]} and {name} have the same place {path}.")
            self._add_weights(name, path.split("/"), annotations[name].get(WEIGHTS))

    def _names_to(self, name: str, below: tuple[str, ...]) -> tuple[str, ...]:
        """Return the names from the root to a queue; a parent that is not in the file is below the root."""
        if name == ROOT:
            return (ROOT,)
        if name in below:
            raise NotFromVolcano(f"The queue {name} is its own ancestor.")
        parent = self.specs.get(name, {}).get("parent") or ROOT
        return (*self._names_to(str(parent), (*below, name)), name)

    def _add_weights(self, name: str, names: list[str], written: str | None) -> None:
        """Add the weights on a path as Volcano reads them.

        The first weight is never read, one that is no number or below 1 is 1, and the first queue on a path decides.
        """
        weights = None if written is None else str(written).split("/")
        if weights is not None and len(weights) != len(names):
            raise NotFromVolcano(f"The queue {name} needs {len(names)} weights for {'/'.join(names)}, as 1/2/8.")
        for end in range(2, len(names) + 1):
            path = "/".join(names[:end])
            if weights is not None:
                self.weights.setdefault(path, _weight(weights[end - 1]))
            elif end == len(names):
                self.weights[path] = self.specs[name].get("weight") or 1
            else:
                self.weights.setdefault(path, 1)


def _weight(text: str) -> float:
    try:
        weight = float(text)
    except ValueError:
        return 1
    return max(1, int(weight) if weight == int(weight) else weight) if math.isfinite(weight) else 1


def _nested(arguments: YamlMapping) -> dict[str, Any]:
    """Return arguments with dotted keys (``sra.enable``) converted to nested ones."""
    nested: dict[str, Any] = {}
    for key, value in arguments.items():
        policy, _, argument = str(key).partition(".")
        if policy not in {"sra", "proportional"} or not argument:
            nested[key] = {**nested.get(key, {}), **value} if isinstance(value, Mapping) and key in nested else value
            continue
        inner = nested.setdefault(policy, {})
        group, _, name = argument.partition(".")
        if group in {"resourceWeight", "resourceProportion"} and name:
            inner.setdefault(group, {})[name] = value
        else:
            inner[argument] = value
    return nested


def _listed(names: Any) -> list[str]:
    """Return names given as a list or as comma-separated text."""
    parts = names.split(",") if isinstance(names, str) else names or ()
    return [str(part).strip() for part in parts if str(part).strip()]


def _ratio(value: Any) -> float:
    """Return a ratio; missing or negative ones are 1, as in Volcano."""
    number = float(value) if isinstance(value, int | float) or str(value).replace(".", "", 1).isdigit() else -1
    return (int(number) if number == int(number) else number) if number >= 0 else 1
