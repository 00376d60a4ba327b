"""Reads Kubernetes pods and pod templates: what they request in Koordinator's terms, and what is not applied.

After https://kubernetes.io/docs/concepts/workloads/pods/init-containers/#resource-sharing-within-containers,
https://kubernetes.io/docs/concepts/scheduling-eviction/pod-overhead/ and
https://kubernetes.io/docs/tasks/configure-pod-container/assign-pod-level-resources/.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil
from typing import Any

from placement.domain.device_types import DeviceSettings
from placement.domain.quantities import quantity_in_manifest
from placement.errors import InvalidAt
from placement.formats.koordinator import HINT, JOINT, REQUESTS, is_requestable, label_trait, type_of

ANNOTATIONS = {
    JOINT: "scheduling.koordinator.sh/device-joint-allocate",
    HINT: "scheduling.koordinator.sh/device-allocate-hint",
}
ROOT_REQUIRED = "root_required"
IGNORE = '"ignore_unknown": true'

PodPath = tuple[str | int, ...]
PodDocument = Mapping[str, Any]
PodQuantities = Mapping[str, Fraction]

_OF_SCHEDULERS = (
    "koordinator.sh/",
    "scheduling.koordinator.sh/",
    "node.koordinator.sh/",
    "scheduling.volcano.sh/",
    "volcano.sh/",
)
_HARD_ANNOTATIONS = {
    "scheduling.koordinator.sh/gpu-partition-spec": '"Restricted"',
    "scheduling.koordinator.sh/resource-spec": "requiredCPUBindPolicy",
    "scheduling.koordinator.sh/numa-topology-spec": "numaTopologyPolicy",
}
"""Annotation -> the word in it that makes it a condition; without it, it only expresses a preference."""

_HARD_FIELDS = ("nodeName", "resourceClaims")
_SOFT_FIELDS = ("tolerations", "priority", "priorityClassName", "runtimeClassName", "schedulerName")
_SOFT_AROUND = ("replicas", "parallelism", "completions", "minAvailable", "queue", "plugins", "policies")
"""Fields beside a template; of several tasks or replicas, a request stands for one pod."""

_POD_LEVEL = ("cpu", "memory", "hugepages-")


@dataclass(frozen=True, slots=True)
class PastedPod:
    """What a pod requests under Koordinator's three keys and ``root_required``, and what of it is not applied."""

    words: dict[str, Any]
    ignored: tuple[str, ...] = ()


def pasted_pod(
    document: PodDocument, devices: DeviceSettings, *, task: str | None = None, ignores_unknown: bool = False
) -> PastedPod:
    """Return what a pod, or a document with the template of one, requests; of several tasks, the one named ``task``.

    ``ignores_unknown`` leaves out conditions that are not applied. Otherwise these are InvalidAt, as is what is
    malformed.

    >>> pod = {"spec": {"containers": [{"resources": {"requests": {"nvidia.com/gpu": "4", "memory": "1Gi"}}}]}}
    >>> pasted_pod(pod, DeviceSettings())
    PastedPod(words={'requests': {'nvidia.com/gpu': 4, 'MEMORY_MB': 1024}, 'root_required': []}, ignored=())
    """
    where, template, around = _template(document, task)
    return _PodReader(devices, where, ignores_unknown=ignores_unknown).read(template, around)


def _template(document: PodDocument, task: str | None) -> tuple[PodPath, PodDocument, Iterable[str]]:
    """Return the path of the pod in a document, the pod, and what around it is not applied."""
    where: PodPath = ("pod",)
    inner, ignored = document, list[str]()
    for key in ("spec", "jobTemplate", "spec", "template"):
        if isinstance(inner.get("tasks"), list):
            where, inner = _task(inner["tasks"], (*where, "tasks"), task)
            ignored += _around(inner, where)
        if "template" in inner:
            return (*where, "template"), _mapping(inner["template"], (*where, "template")), ignored
        if not isinstance(inner.get(key), Mapping):
            break
        where, inner = (*where, key), inner[key]
        ignored += _around(inner, where)
    return ("pod",), document, ()


def _around(inner: PodDocument, where: PodPath) -> list[str]:
    """Return the paths of what is beside a template and not applied."""
    return [_text((*where, name)) for name in _SOFT_AROUND if inner.get(name) is not None]


def _task(tasks: list[Any], where: PodPath, name: str | None) -> tuple[PodPath, PodDocument]:
    named = {str(_mapping(task, (*where, index)).get("name", index)): index for index, task in enumerate(tasks)}
    if name is None and len(named) == 1:
        (name,) = named
    if name not in named:
        raise InvalidAt(where, f'A request is for one task; write "task": and one of "{", ".join(named)}".')
    return (*where, named[name]), tasks[named[name]]


def _text(path: PodPath) -> str:
    """Return a path as answers show it, without the key ``pod``."""
    return "".join([f"[{key}]" if isinstance(key, int) else f".{key}" for key in path[1:]]).lstrip(".")


def _mapping(value: Any, where: PodPath) -> PodDocument:
    """Check that a part is an object; manifests may leave it empty."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InvalidAt(where, "The value is not an object.")
    return value


def _mappings(value: Any, where: PodPath) -> Iterator[tuple[PodPath, PodDocument]]:
    """Yield the objects of a list, with their paths; manifests may leave it empty."""
    if value is not None and not isinstance(value, list):
        raise InvalidAt(where, "The value is not a list.")
    for index, entry in enumerate(value or ()):
        if not isinstance(entry, Mapping):
            raise InvalidAt((*where, index), "The value is not an object.")
        yield (*where, index), entry


@dataclass
class _PodReader:
    """Reads one pod, and notes what is not applied."""

    devices: DeviceSettings
    where: PodPath
    ignores_unknown: bool
    _ignored: list[str] = field(default_factory=list)

    def read(self, pod: PodDocument, around: Iterable[str]) -> PastedPod:
        """Return what the pod requests."""
        self._ignored += around
        spec, where = pod.get("spec"), (*self.where, "spec")
        if not isinstance(spec, Mapping) or not spec.get("containers"):
            raise InvalidAt((*where, "containers"), "A pod has one container or more.")
        words = {REQUESTS: self._requests(spec, where), **self._annotations(pod)}
        words[ROOT_REQUIRED] = list(dict.fromkeys(self._labels(spec, where)))
        for path, is_condition in _unread(spec, where):
            (self._note_condition if is_condition else self._note)(path)
        return PastedPod(words, tuple(self._ignored))

    def _requests(self, spec: PodDocument, where: PodPath) -> dict[str, int]:
        """Return the pod's request as Kubernetes computes it; amounts are added up first, and then rounded up once."""
        running, sidecars, before = _ResourceSums(), _ResourceSums(), _ResourceSums()
        for path, container in _mappings(spec.get("containers"), (*where, "containers")):
            running.add(self._resources(container, path))
        for path, container in _mappings(spec.get("initContainers"), (*where, "initContainers")):
            amounts = self._resources(container, path)
            if container.get("restartPolicy") == "Always":
                running.add(amounts)
                sidecars.add(amounts)
                before.raise_to(sidecars)
            else:
                before.raise_to(_ResourceSums(sidecars).add(amounts))
        running.raise_to(before)
        running.update(self._of_pod(spec, where, running))
        running.add(self._quantities(spec.get("overhead"), (*where, "overhead")))
        requests: dict[str, Fraction] = {}
        for name, amount in running.items():
            resource = name if type_of(name, self.devices) else self.devices.host.get(name, name)
            requests[resource] = requests.get(resource, Fraction()) + amount
        return {name: ceil(amount) for name, amount in requests.items() if amount}

    def _of_pod(self, spec: PodDocument, where: PodPath, containers: PodQuantities) -> PodQuantities:
        """Return what the pod as a whole requests, which replaces what its containers do."""
        path = (*where, "resources")
        resources = _mapping(spec.get("resources"), path)
        for key in ("requests", "limits"):
            for name in _mapping(resources.get(key), (*path, key)):
                if not name.startswith(_POD_LEVEL):
                    raise InvalidAt((*path, key, name), "Only cpu, memory and hugepages are requested for a whole pod.")
        limits = self._quantities(resources.get("limits"), (*path, "limits"))
        requests = self._quantities(resources.get("requests"), (*path, "requests"))
        return {**{name: amount for name, amount in limits.items() if name not in containers}, **requests}

    def _resources(self, container: PodDocument, where: PodPath) -> PodQuantities:
        """Return what a container requests; a limit stands in for a missing request."""
        path = (*where, "resources")
        resources = _mapping(container.get("resources"), path)
        merged: dict[str, Any] = {}
        for key in ("limits", "requests"):
            merged |= _mapping(resources.get(key), (*path, key))
        for port_path, port in _mappings(container.get("ports"), (*where, "ports")):
            if port.get("hostPort"):
                self._note_condition((*port_path, "hostPort"))
        return self._quantities(merged, path)

    def _quantities(self, amounts: Any, where: PodPath) -> PodQuantities:
        quantities = {}
        for name, quantity in _mapping(amounts, where).items():
            resource_class = name if type_of(name, self.devices) else self.devices.host.get(name, name)
            if not is_requestable(resource_class, self.devices):
                self._note_condition((*where, name), "No device type and no class stands for it under devices")
                continue
            try:
                quantities[name] = quantity_in_manifest(name, resource_class, quantity)
            except ValueError as wrong:
                raise InvalidAt((*where, name), str(wrong)) from wrong
        return quantities

    def _annotations(self, pod: PodDocument) -> dict[str, Any]:
        where = (*self.where, "metadata")
        metadata = _mapping(pod.get("metadata"), where)
        for part in ("annotations", "labels"):
            for name, value in _mapping(metadata.get(part), (*where, part)).items():
                if name in _HARD_ANNOTATIONS and _HARD_ANNOTATIONS[name] in str(value):
                    self._note_condition((*where, part, name))
                elif name.startswith(_OF_SCHEDULERS) and name not in ANNOTATIONS.values():
                    self._note((*where, part, name))
        annotations = _mapping(metadata.get("annotations"), (*where, "annotations"))
        return {
            key: _parsed(annotations[name], (*where, "annotations", name))
            for key, name in ANNOTATIONS.items()
            if name in annotations
        }

    def _labels(self, spec: PodDocument, where: PodPath) -> Iterator[str]:
        """Yield the root's traits that stand for labels of nodes, as ``devices.labels`` maps them."""
        for key, value in _mapping(spec.get("nodeSelector"), (*where, "nodeSelector")).items():
            yield from self._trait_of((*where, "nodeSelector", key), {"key": key, "operator": "In", "values": [value]})
        path, rules = (*where,), spec
        for name in ("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"):
            path, rules = (*path, name), _mapping(rules.get(name), (*path, name))
        path = (*path, "nodeSelectorTerms")
        terms = list(_mappings(rules.get("nodeSelectorTerms"), path))
        if len(terms) > 1 or any("matchFields" in term for _path, term in terms):
            self._note_condition(path)
            return
        for place, term in terms:
            for inner, expression in _mappings(term.get("matchExpressions"), (*place, "matchExpressions")):
                yield from self._trait_of(inner, expression)

    def _trait_of(self, where: PodPath, expression: PodDocument) -> Iterator[str]:
        key, operator = str(expression.get("key")), expression.get("operator")
        values = expression.get("values") or []
        if (prefix := self.devices.labels.get(key)) is None:
            self._note_condition(where, f"No trait stands for the label {key} under devices.labels")
        elif operator in ("Exists", "DoesNotExist"):
            yield ("!" if operator == "DoesNotExist" else "") + prefix.rstrip("_")
        elif operator in ("In", "NotIn") and values:
            traits = [label_trait(prefix, str(value)) for value in values]
            if operator == "NotIn":
                yield from [f"!{trait}" for trait in traits]
            else:
                yield "in:" + ",".join(traits) if len(traits) > 1 else traits[0]
        else:
            self._note_condition(where)

    def _note(self, path: PodPath) -> None:
        self._ignored.append(_text(path))

    def _note_condition(self, path: PodPath, reason: str = "This condition is not applied") -> None:
        """Note a condition that is not applied; InvalidAt unless such conditions are to be ignored."""
        if not self.ignores_unknown:
            raise InvalidAt(path, f"{reason}; {IGNORE} leaves it out.")
        self._note(path)


def _unread(spec: PodDocument, where: PodPath) -> Iterator[tuple[PodPath, bool]]:
    """Yield the paths of fields that are not applied, and whether each is a condition."""
    yield from [((*where, name), name in _HARD_FIELDS) for name in (*_HARD_FIELDS, *_SOFT_FIELDS) if spec.get(name)]
    for path, rule in _mappings(spec.get("topologySpreadConstraints"), (*where, "topologySpreadConstraints")):
        yield path, rule.get("whenUnsatisfiable") != "ScheduleAnyway"
    for path, volume in _mappings(spec.get("volumes"), (*where, "volumes")):
        if "persistentVolumeClaim" in volume or "ephemeral" in volume:
            yield path, False
    for kind, rules in _mapping(spec.get("affinity"), (*where, "affinity")).items():
        for name, terms in _mapping(rules, (*where, "affinity", kind)).items():
            is_condition = name.startswith("required")
            if terms and not (is_condition and kind == "nodeAffinity"):
                yield (*where, "affinity", kind, name), is_condition


class _ResourceSums(dict[str, Fraction]):
    def add(self, amounts: PodQuantities) -> "_ResourceSums":
        """Add amounts, and return the sum."""
        for name, amount in amounts.items():
            self[name] = self.get(name, Fraction()) + amount
        return self

    def raise_to(self, amounts: PodQuantities) -> None:
        """Take the larger amount of each resource."""
        for name, amount in amounts.items():
            self[name] = max(self.get(name, amount), amount)


def _parsed(value: Any, where: PodPath) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as wrong:
        raise InvalidAt(where, f"The annotation is not JSON: {wrong}.") from wrong
