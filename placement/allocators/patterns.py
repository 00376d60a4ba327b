"""Names of resource classes in a configuration: exact ones, families (``CUSTOM_GPU_*``), and those of vendors.

The names a device plugin uses (``nvidia.com/gpu-v100``) are translated as os-resource-classes does it: upper case, each
run of other characters an underscore, ``CUSTOM_`` in front. The vendor's domain stays in the name, so that two vendors
with a "gpu" do not meet.
"""

import re
from collections.abc import Iterable, Mapping
from typing import TypeVar

from placement.allocators.entries import InvalidEntry

WILDCARD = "*"

_RESOURCE_CLASS = re.compile(r"[A-Z0-9_]+")
_VENDOR_NAME = re.compile(r"(?=.*[./])[A-Za-z0-9][A-Za-z0-9._/-]*")

V = TypeVar("V")


def resource_class(name: str) -> str:
    """Return the resource class that a name or pattern means.

    A name of upper-case letters, digits and underscores is a class as it is. A name with a dot or a slash is a
    vendor's, and translated. One star at the end makes it the pattern of a family; the empty ending belongs to it.

    Source: RS-23, RS-24; the user stories of Volcano's ResourceStrategyFit, where ``nvidia.com/gpu/*`` is to cover
    ``nvidia.com/gpu-v100``. On the translated names it does.

    Raises:
        ValueError: for other names, a bare star, several stars, or a star that is not at the end.

    >>> resource_class("CUSTOM_GPU_*")
    'CUSTOM_GPU_*'
    >>> resource_class("nvidia.com/gpu/*")
    'CUSTOM_NVIDIA_COM_GPU_*'
    >>> resource_class("nvidia.com/gpu-v100")
    'CUSTOM_NVIDIA_COM_GPU_V100'
    >>> resource_class("*.com/gpu")
    Traceback (most recent call last):
    ...
    ValueError: a star may only stand at the end of a name: '*.com/gpu'
    """
    stem = name.removesuffix(WILDCARD)
    if WILDCARD in stem:
        raise ValueError(f"a star may only stand at the end of a name: {name!r}")
    star = name[len(stem) :]
    if _RESOURCE_CLASS.fullmatch(stem):
        return stem + star
    if _VENDOR_NAME.fullmatch(stem):
        return "CUSTOM_" + re.sub("[^A-Z0-9]+", "_", stem.upper()) + star
    raise ValueError(f"neither a resource class, a vendor's name, nor one of them with a star at the end: {name!r}")


def by_resource_class(entries: Mapping[str, V], *path: str) -> dict[str, V]:
    """Return the entries of a configuration under the classes and patterns that their keys mean.

    Raises:
        InvalidEntry: for a key that means none, and for two keys that mean the same.
    """
    translated: dict[str, V] = {}
    for key, value in entries.items():
        try:
            name = resource_class(key)
        except (TypeError, AttributeError, ValueError) as wrong:
            raise InvalidEntry((*path, str(key)), "a resource class or a family such as CUSTOM_GPU_*", key) from wrong
        if name in translated:
            raise InvalidEntry((*path, key), f"one entry for {name}", key)
        translated[name] = value
    return translated


def best_match(patterns: Iterable[str], name: str) -> str | None:
    """Return what a class is configured by: its own name, else the longest pattern that covers it, else nothing.

    O(patterns). Source: RS-23.

    >>> best_match(["CUSTOM_*", "CUSTOM_GPU_*", "CUSTOM_GPU_A100"], "CUSTOM_GPU_T4")
    'CUSTOM_GPU_*'
    >>> best_match(["CUSTOM_*", "CUSTOM_GPU_*", "CUSTOM_GPU_A100"], "CUSTOM_GPU_A100")
    'CUSTOM_GPU_A100'
    >>> best_match(["CUSTOM_*"], "VCPU") is None
    True
    """
    longest = None
    for pattern in patterns:
        if pattern == name:
            return pattern
        if pattern.endswith(WILDCARD) and name.startswith(pattern[:-1]) and len(pattern) > len(longest or ""):
            longest = pattern
    return longest
