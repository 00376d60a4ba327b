"""Translates Koordinator's device hints and joint allocation into the planner's terms."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from placement.domain.device_types import DeviceSettings, DeviceType
from placement.domain.planner_request import THE_DEVICE
from placement.errors import InvalidAt

JOINT, HINT, REQUESTS = "device_joint_allocate", "device_allocate_hint", "requests"
KEYS = frozenset({JOINT, HINT, REQUESTS})
"""The keys of a request body that are Koordinator's."""

Annotations = Mapping[str, Any]


def in_planner_words(body: Annotations, devices: DeviceSettings) -> dict[str, Any]:
    """Translate Koordinator's keys in a request body into the planner's groups, affinity and exclusive.

    A type takes no part in the joint allocation if nothing of it is requested, or all of it is (ApplyForAll).

    After Koordinator's proposal "Device Allocate Hint APIs".

    Raises:
        InvalidAt: a device type or resource is unknown, or an amount makes no sense.

    >>> body = {"requests": {"gpu": 4, "rdma": 1}, "device_joint_allocate": {"deviceTypes": ["gpu", "rdma"]}}
    >>> said = in_planner_words(body, DeviceSettings())
    >>> said["groups"]["_gpu"], said["groups"]["_rdma"]["count"], said["affinity"][0]["mode"]
    ({'resources': {'PGPU': 1}, 'count': 4}, 'per-subtree', 'preferred')
    """
    hints = body.get(HINT, {})
    _check_types(body, devices)
    amounts = _amounts(body.get(REQUESTS, {}), devices)
    joint = [name for name in body.get(JOINT, {}).get("deviceTypes", ()) if name in amounts]
    joint = [name for name in joint if hints.get(name, {}).get("allocateStrategy") != "ApplyForAll"]
    groups = {_suffix(name): _group(name, amounts[name], hints.get(name, {}), devices) for name in amounts}
    for name in joint[1:]:
        groups[_suffix(name)] |= _one_in_each_place(groups[_suffix(name)])
    return {
        "groups": {**_rest(body.get(REQUESTS, {}), devices), **groups},
        "affinity": [_affinity(joint, body[JOINT], devices)] if len(joint) > 1 else [],
        "exclusive": list(_exclusive(hints, amounts, devices)),
    }


def _suffix(name: str) -> str:
    return f"_{name}"


def _check_types(body: Annotations, devices: DeviceSettings) -> None:
    joint = [((JOINT, "deviceTypes"), name) for name in body.get(JOINT, {}).get("deviceTypes", ())]
    for path, name in [*joint, *[((HINT, name), name) for name in body.get(HINT, {})]]:
        if name not in devices.types:
            raise InvalidAt(path, f"There is no device type {name!r}; there are {', '.join(devices.types)}.")


def type_of(resource: str, devices: DeviceSettings) -> str | None:
    """Return the device type that a resource name requests, or None."""
    for name, kind in devices.types.items():
        if resource == name or resource in kind.resources:
            return name
    return None


def _amounts(requests: Mapping[str, int], devices: DeviceSettings) -> dict[str, int]:
    """Return the amount requested of each device type."""
    found: dict[str, int] = {}
    for resource, amount in requests.items():
        if (name := type_of(resource, devices)) is not None:
            if name in found:
                raise InvalidAt((REQUESTS, resource), f"The device type {name} is requested twice.")
            found[name] = amount
    return found


def _rest(requests: Mapping[str, int], devices: DeviceSettings) -> dict[str, Any]:
    """Return the unsuffixed group for everything but devices, whose names must be resource classes."""
    rest = {name: amount for name, amount in requests.items() if type_of(name, devices) is None}
    for name in rest:
        if not re.fullmatch("[A-Z0-9_]+", name):
            raise InvalidAt((REQUESTS, name), "This is neither a resource of a device type nor a resource class.")
    return {"": {"resources": rest}} if rest else {}


def _group(name: str, asked: int, hint: Annotations, devices: DeviceSettings) -> dict[str, Any]:
    kind = devices.types[name]
    count, amount = _instances(name, asked, hint, kind)
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


def _instances(name: str, asked: int, hint: Annotations, kind: DeviceType) -> tuple[int | str, int]:
    """Return how many devices to request, and how much of each."""
    strategy = hint.get("allocateStrategy")
    if asked > kind.whole:
        if asked % kind.whole:
            sentence = (
                f"More than one device of the type {name} is requested in multiples of {kind.whole}, not {asked}."
            )
            raise InvalidAt((REQUESTS,), sentence)
        # As in Koordinator, this means whole devices, whatever the hint says.
        return asked // kind.whole, kind.whole
    if strategy == "ApplyForAll":
        return "all", asked
    if strategy == "RequestsAsCount":
        return asked, kind.whole if hint.get("exclusivePolicy") == "DeviceLevel" else 1
    return 1, asked


def _one_in_each_place(group: Annotations) -> dict[str, Any]:
    return {"count": "per-subtree", "at_least": group["count"]}


def _affinity(names: list[str], joint: Annotations, devices: DeviceSettings) -> dict[str, Any]:
    mode = "required" if joint.get("requiredScope") else "preferred"
    level = devices.same_numa if joint.get("requiredScope") == "SameNUMANode" else devices.same_pcie
    groups = [_suffix(name) for name in names]
    return {"groups": groups, "primary": groups[0], "level": level, "mode": mode}


def _exclusive(
    hints: Mapping[str, Annotations], amounts: Mapping[str, int], devices: DeviceSettings
) -> Iterator[dict[str, Any]]:
    levels = {"PCIeLevel": devices.same_pcie, "DeviceLevel": THE_DEVICE}
    for name, hint in hints.items():
        if name in amounts and hint.get("exclusivePolicy"):
            yield {"groups": [_suffix(name)], "level": levels[hint["exclusivePolicy"]]}


def _traits(selector: Annotations, kind: DeviceType, path: tuple[str, ...]) -> Iterator[str]:
    """Yield the traits that a label selector demands; a bare key is a trait as well, for Exists and DoesNotExist."""
    for key, value in selector.get("matchLabels", {}).items():
        yield _trait(kind, key, value)
    for index, expression in enumerate(selector.get("matchExpressions", ())):
        key, operator = expression["key"], expression["operator"]
        values = [_trait(kind, key, value) for value in expression.get("values", ())]
        if bool(values) == (operator in ("Exists", "DoesNotExist")):
            raise InvalidAt(
                (*path, "matchExpressions", index, "values"), f"{operator} has {_some_or_no(operator)} values."
            )
        yield from _expression(operator, _trait(kind, key), values)


def _some_or_no(operator: str) -> str:
    return "no" if operator in ("Exists", "DoesNotExist") else "one or more"


def _expression(operator: str, key: str, values: list[str]) -> list[str]:
    said = {
        "In": ["in:" + ",".join(values)],
        "NotIn": [f"!{value}" for value in values],
        "Exists": [key],
        "DoesNotExist": [f"!{key}"],
    }
    return said[operator]


def _trait(kind: DeviceType, *parts: str) -> str:
    """Return the trait for a label: ``type=fakeW`` is CUSTOM_NIC_LABEL_TYPE_FAKEW."""
    return kind.label_prefix + "_".join([re.sub("[^A-Z0-9]+", "_", part.upper()) for part in parts])
