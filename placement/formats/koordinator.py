"""Translates Koordinator's device hints and joint allocation into the planner's terms."""

import math
import re
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from placement.domain.device_types import PERCENT, DeviceSettings, DeviceType
from placement.domain.planner_request import THE_DEVICE
from placement.domain.quantities import quantity_in_manifest, sum_of_amounts
from placement.errors import InvalidAt

JOINT, HINT, REQUESTS = "device_joint_allocate", "device_allocate_hint", "requests"
KEYS = frozenset({JOINT, HINT, REQUESTS})
"""The keys of a request body that are Koordinator's."""

Annotations = Mapping[str, Any]
Instances = tuple[int | str, int]
"""How many devices, and how much of each."""


def in_planner_words(body: Annotations, devices: DeviceSettings) -> dict[str, Any]:
    """Translate Koordinator's keys in a body into groups, affinity and exclusive; InvalidAt for what makes no sense.

    A type takes no part in the joint allocation if nothing of it is requested, or all of it is (ApplyForAll). After
    Koordinator's proposal "Device Allocate Hint APIs".

    >>> body = {"requests": {"gpu": 4, "rdma": 1}, "device_joint_allocate": {"deviceTypes": ["gpu", "rdma"]}}
    >>> said = in_planner_words(body, DeviceSettings())
    >>> said["groups"]["_gpu"], said["groups"]["_rdma"]["count"], said["affinity"][0]["mode"]
    ({'resources': {'PGPU': 1}, 'count': 4}, 'per-subtree', 'preferred')
    """
    hints = body.get(HINT, {})
    named = body.get(JOINT, {}).get("deviceTypes", ())
    named_types: list[tuple[tuple[str, str], str]] = [((JOINT, "deviceTypes"), name) for name in named]
    for path, name in named_types + [((HINT, name), name) for name in hints]:
        if name not in devices.types:
            raise InvalidAt(path, f"There is no device type {name!r}; there are {', '.join(devices.types)}.")
    requests = body.get(REQUESTS, {})
    amounts = _amounts(requests, devices)
    groups = {_suffix(name): _group(name, amounts[name], body, devices) for name in amounts}
    joint = [name for name in named if name in amounts and hints.get(name, {}).get("allocateStrategy") != "ApplyForAll"]
    for name in joint[1:]:
        groups[_suffix(name)] |= {"count": "per-subtree", "at_least": groups[_suffix(name)]["count"]}
    levels = {"PCIeLevel": devices.same_pcie, "DeviceLevel": THE_DEVICE}
    exclusive = {name: hint["exclusivePolicy"] for name, hint in hints.items() if hint.get("exclusivePolicy")}
    return {
        "groups": {**_besides_devices(requests, devices), **groups},
        "affinity": [_affinity(joint, body[JOINT], devices)] if len(joint) > 1 else [],
        "exclusive": [
            {"groups": [_suffix(name)], "level": levels[policy]}
            for name, policy in exclusive.items()
            if name in amounts
        ],
    }


def _suffix(name: str) -> str:
    return f"_{name}"


def type_of(resource: str, devices: DeviceSettings) -> str | None:
    """Return the device type that a resource name requests, or None."""
    for name, kind in devices.types.items():
        if resource in (name, kind.shared) or resource in kind.resources:
            return name
    return None


def is_requestable(resource: str, devices: DeviceSettings) -> bool:
    """Tell whether a name is one of a device type or a resource class."""
    return type_of(resource, devices) is not None or re.fullmatch("[A-Z0-9_]+", resource) is not None


def label_trait(prefix: str, *parts: str) -> str:
    """Return the trait for a label: ``type=fakeW`` is CUSTOM_NIC_LABEL_TYPE_FAKEW."""
    return prefix + "_".join([re.sub("[^A-Z0-9]+", "_", part.upper()) for part in parts])


def _amounts(requests: Mapping[str, int], devices: DeviceSettings) -> dict[str, Fraction]:
    """Return the amount requested of each device type, in units of its class."""
    amounts: dict[str, Fraction] = {}
    percent: set[str] = set()
    for resource, amount in requests.items():
        name = type_of(resource, devices)
        if name is None or resource == devices.types[name].shared:
            continue
        kind = devices.types[name]
        for_one = kind.resources.get(resource, kind.whole)
        if name in amounts and not (for_one == PERCENT and name in percent):
            raise InvalidAt((REQUESTS, resource), f"The device type {name} is requested twice.")
        percent |= {name} if for_one == PERCENT else set()
        # Cores and memory are shares of the same devices, so the larger one counts.
        amounts[name] = max(amounts.get(name, Fraction()), Fraction(amount * kind.whole, for_one))
    for name, kind in devices.types.items():
        if kind.shared and requests.get(kind.shared) and name not in amounts:
            raise InvalidAt(
                (REQUESTS, str(kind.shared)),
                "The key needs gpu-core or gpu-memory-ratio, the share of each device, beside it.",
            )
    return amounts


def _besides_devices(requests: Mapping[str, int], devices: DeviceSettings) -> dict[str, Any]:
    """Return the unsuffixed group for everything but devices; as in Kubernetes, memory and storage are in bytes."""
    resources: dict[str, int] = {}
    for name, amount in requests.items():
        if type_of(name, devices) is None:
            if not is_requestable(resource_class := devices.host.get(name, name), devices):
                raise InvalidAt(
                    (REQUESTS, name), "The name is neither a resource of a device type nor a resource class."
                )
            try:
                units = math.ceil(quantity_in_manifest(name, resource_class, amount))
                resources[resource_class] = sum_of_amounts(resources.get(resource_class, 0), units)
            except ValueError as wrong:
                raise InvalidAt((REQUESTS, name), str(wrong)) from wrong
    return {"": {"resources": resources}} if resources else {}


def _group(name: str, requested: Fraction, body: Annotations, devices: DeviceSettings) -> dict[str, Any]:
    kind, hint = devices.types[name], body.get(HINT, {}).get(name, {})
    count, amount = _instances(name, requested, body, kind)
    resources = {kind.resource_class: amount}
    group: dict[str, Any] = {}
    # Kubernetes writes null for absent values.
    if hint.get("vfSelector") is not None:
        if kind.virtual_function is None:
            raise InvalidAt((HINT, name, "vfSelector"), f"The device type {name} has no virtual functions.")
        resources = {kind.virtual_function: 1}
        group["vf_selector"] = list(_traits(hint["vfSelector"], kind, (HINT, name, "vfSelector")))
    if selector := hint.get("selector"):
        group["selector"] = list(_traits(selector, kind, (HINT, name, "selector")))
    return {"resources": resources, **group, "count": count}


def _instances(name: str, requested: Fraction, body: Annotations, kind: DeviceType) -> Instances:
    hint = body.get(HINT, {}).get(name, {})
    if count := kind.shared and body[REQUESTS].get(kind.shared):
        return count, _units(name, requested / count, kind)
    if requested > kind.whole:
        if requested % kind.whole:
            sentence = (
                f"More than one device of the type {name} is requested in multiples of {kind.whole}, not {requested}."
            )
            raise InvalidAt((REQUESTS,), sentence)
        # As in Koordinator, this means whole devices, whatever the hint says.
        return int(requested // kind.whole), kind.whole
    amount = _units(name, requested, kind)
    if hint.get("allocateStrategy") == "ApplyForAll":
        return "all", amount
    if hint.get("allocateStrategy") == "RequestsAsCount":
        return amount, kind.whole if hint.get("exclusivePolicy") == "DeviceLevel" else 1
    return 1, amount


def _units(name: str, amount: Fraction, kind: DeviceType) -> int:
    """Return an amount of one device in units of its class, rounded up; InvalidAt for a share of what is only whole."""
    if amount > kind.whole:
        raise InvalidAt((REQUESTS,), f"More than a whole device of the type {name} is requested of each device.")
    if kind.whole == 1 and amount != 1:
        line = f"class: CUSTOM_{name.upper()}_SHARE, whole: {PERCENT}"
        sentence = (
            f"{kind.resource_class} is allocated whole; for shares, planner.yaml needs, under devices.types.{name}"
        )
        raise InvalidAt((REQUESTS,), f"{sentence}: {line}.")
    return math.ceil(amount)


def _affinity(names: list[str], joint: Annotations, devices: DeviceSettings) -> dict[str, Any]:
    mode = "required" if joint.get("requiredScope") else "preferred"
    level = devices.same_numa if joint.get("requiredScope") == "SameNUMANode" else devices.same_pcie
    groups = [_suffix(name) for name in names]
    return {"groups": groups, "primary": groups[0], "level": level, "mode": mode}


def _traits(selector: Annotations, kind: DeviceType, path: tuple[str, ...]) -> Iterator[str]:
    """Yield the traits that a label selector demands; a bare key is a trait as well, for Exists and DoesNotExist."""
    for key, value in selector.get("matchLabels", {}).items():
        yield label_trait(kind.label_prefix, key, value)
    for index, expression in enumerate(selector.get("matchExpressions", ())):
        key, operator = expression["key"], expression["operator"]
        values = [label_trait(kind.label_prefix, key, value) for value in expression.get("values", ())]
        is_bare = operator in ("Exists", "DoesNotExist")
        if bool(values) == is_bare:
            where: tuple[str | int, ...] = (*path, "matchExpressions", index, "values")
            raise InvalidAt(where, f"The operator {operator} takes {'no' if is_bare else 'one or more'} values.")
        if operator == "In":
            yield "in:" + ",".join(values)
        else:
            sign = "" if operator == "Exists" else "!"
            yield from [f"{sign}{trait}" for trait in values or [label_trait(kind.label_prefix, key)]]
