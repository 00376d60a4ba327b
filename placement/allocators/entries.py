"""Configuration entries: numbers, words and names of resource classes, and an error that identifies the entry.

Names are exact ones, families (``CUSTOM_GPU_*``), and vendors' names. A device plugin's name (``nvidia.com/gpu-v100``)
is translated as os-resource-classes does it: upper case, each run of other characters replaced by an underscore,
``CUSTOM_`` in front. The vendor's domain stays in the name, so that the "gpu" of two vendors do not collide.
"""

import math
import re
from collections.abc import Collection, Iterable, Mapping
from fractions import Fraction
from typing import TypeVar

Number = int | float | Fraction


class InvalidEntry(ValueError):
    """An entry of a configuration is invalid; ``path`` has the keys to it from the object being built."""

    def __init__(self, path: tuple[str, ...], expected: str, value: object) -> None:
        super().__init__(f"{'.'.join(path)}: expected {expected}, found {value!r}")
        self.path = path
        self.expected = expected
        self.value = value


MAX_NUMBER = 10**15
"""Anything larger is not a plausible weight or amount, and sums would overflow."""


def check_number(value: object, *path: str) -> None:
    """Refuse anything but a number from 0 to MAX_NUMBER; booleans do not count as numbers."""
    is_number = isinstance(value, Number) and not isinstance(value, bool)
    if not (is_number and math.isfinite(value) and value >= 0):  # type: ignore[arg-type, operator]
        raise InvalidEntry(path, "a number from 0 up", value)
    if value > MAX_NUMBER:  # type: ignore[operator]
        raise InvalidEntry(path, f"a number up to {MAX_NUMBER}", value)


def check_word(value: object, words: Collection[str], *path: str) -> None:
    """Refuse anything but one of these words."""
    if value not in words:
        raise InvalidEntry(path, " or ".join(words), value)


def exact(value: Number) -> Fraction:
    """Return a number exactly as written: 0.1 is one tenth, not the nearest binary fraction.

    >>> exact(0.1), exact(3)
    (Fraction(1, 10), Fraction(3, 1))
    """
    return Fraction(str(value)) if isinstance(value, float) else Fraction(value)


WILDCARD = "*"

_RESOURCE_CLASS = re.compile(r"[A-Z0-9_]+")
_VENDOR_NAME = re.compile(r"(?=.*[./])[A-Za-z0-9][A-Za-z0-9._/-]*")

V = TypeVar("V")


def resource_class(name: str) -> str:
    """Return the resource class or family that a name or pattern denotes.

    A name of upper-case letters, digits and underscores stays as it is. A name with a dot or slash is a vendor's, and
    gets translated. A trailing star makes a pattern for a family, which matches an empty ending too. Any other name is
    a ValueError. Source: RS-23, RS-24; the user stories of Volcano's ResourceStrategyFit, where ``nvidia.com/gpu/*``
    has to cover ``nvidia.com/gpu-v100``. It does, once both are translated.

    >>> resource_class("nvidia.com/gpu/*"), resource_class("nvidia.com/gpu-v100")
    ('CUSTOM_NVIDIA_COM_GPU_*', 'CUSTOM_NVIDIA_COM_GPU_V100')
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
    """Re-key entries by the classes and patterns that their keys denote.

    Raises:
        InvalidEntry: a key denotes no class, or two keys denote the same.
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
    """Return the entry that applies to a class: its own name, else the longest matching pattern, else None (RS-23).

    >>> best_match(["CUSTOM_*", "CUSTOM_GPU_*", "CUSTOM_GPU_A100"], "CUSTOM_GPU_T4")
    'CUSTOM_GPU_*'
    """
    longest = None
    for pattern in patterns:
        if pattern == name:
            return pattern
        if pattern.endswith(WILDCARD) and name.startswith(pattern[:-1]) and len(pattern) > len(longest or ""):
            longest = pattern
    return longest
