"""Translates Kubernetes pods and pod templates into requests in Koordinator's terms."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from placement.domain.device_types import DeviceSettings
from placement.domain.koordinator import HINT, JOINT, REQUESTS, type_of
from placement.domain.quantities import amount_in_manifest
from placement.errors import InvalidAt

ANNOTATIONS = {
    JOINT: "scheduling.koordinator.sh/device-joint-allocate",
    HINT: "scheduling.koordinator.sh/device-allocate-hint",
}

PodPath = tuple[str | int, ...]
PodDocument = Mapping[str, Any]


def in_koordinators_words(pod: PodDocument, devices: DeviceSettings) -> dict[str, Any]:
    """Return a pod's request under Koordinator's three keys, with annotations parsed and containers added up.

    ``pod`` has ``metadata.annotations`` and ``spec.containers[].resources``, possibly inside ``template`` or
    ``spec.template``, as in kinds with pod templates. Init containers run before the others, so the largest of their
    requests counts. A limit stands in for a missing request.

    Raises:
        InvalidAt: an annotation is not JSON, an amount or a part is malformed, or there is no container.

    >>> pod = {"spec": {"containers": [{"resources": {"requests": {"nvidia.com/gpu": "4", "memory": "1Gi"}}}]}}
    >>> in_koordinators_words(pod, DeviceSettings())
    {'requests': {'nvidia.com/gpu': 4, 'MEMORY_MB': 1024}}
    """
    where, template = _template(pod)
    spec = template.get("spec")
    if not isinstance(spec, Mapping) or not spec.get("containers"):
        raise InvalidAt((*where, "spec", "containers"), "A pod has one container or more.")
    metadata = _mapping(template.get("metadata"), (*where, "metadata"))
    annotations = _mapping(metadata.get("annotations"), (*where, "metadata", "annotations"))
    said = {
        key: _annotation(annotations[name], (*where, "metadata", "annotations", name))
        for key, name in ANNOTATIONS.items()
        if name in annotations
    }
    running, before = Counter[str](), Counter[str]()
    for amounts in _amounts(spec, "containers", where, devices):
        running.update(amounts)
    for amounts in _amounts(spec, "initContainers", where, devices):
        before |= Counter(amounts)
    return {REQUESTS: dict(running | before), **said}


def _template(pod: PodDocument) -> tuple[PodPath, PodDocument]:
    """Return the path of the pod in a document, and the pod."""
    spec = pod.get("spec")
    if "template" in pod:
        return ("pod", "template"), _mapping(pod["template"], ("pod", "template"))
    if isinstance(spec, Mapping) and "template" in spec:
        return ("pod", "spec", "template"), _mapping(spec["template"], ("pod", "spec", "template"))
    return ("pod",), pod


def _mapping(value: Any, where: PodPath) -> PodDocument:
    """Check that a part is an object; manifests may leave it empty."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InvalidAt(where, "This is not an object.")
    return value


def _list(value: Any, where: PodPath) -> list[Any]:
    """Check that a part is a list; manifests may leave it empty."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise InvalidAt(where, "This is not a list.")
    return value


def _annotation(value: Any, where: PodPath) -> Any:
    """Parse an annotation, a string that contains JSON."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as wrong:
        raise InvalidAt(where, f"The annotation is not JSON: {wrong}.") from wrong


def _amounts(spec: PodDocument, key: str, where: PodPath, devices: DeviceSettings) -> Iterator[dict[str, int]]:
    """Yield what each container asks for: device types under their own names, everything else by resource class."""
    for index, container in enumerate(_list(spec.get(key), (*where, "spec", key))):
        path = (*where, "spec", key, index)
        if not isinstance(container, Mapping):
            raise InvalidAt(path, "This is not an object.")
        resources = _mapping(container.get("resources"), (*path, "resources"))
        limits = _mapping(resources.get("limits"), (*path, "resources", "limits"))
        asked = {**limits, **_mapping(resources.get("requests"), (*path, "resources", "requests"))}
        yield dict(_amount(name, quantity, (*path, "resources", name), devices) for name, quantity in asked.items())


def _amount(name: str, quantity: Any, path: PodPath, devices: DeviceSettings) -> tuple[str, int]:
    resource_class = name if type_of(name, devices) else devices.host.get(name, name)
    try:
        return resource_class, amount_in_manifest(name, resource_class, quantity)
    except ValueError as wrong:
        raise InvalidAt(path, str(wrong)) from wrong
