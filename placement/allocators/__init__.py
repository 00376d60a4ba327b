"""The algorithms, a library of their own that knows no server; here is what they share.

That is a budget of steps, an order of names, and the entries of a configuration: numbers, and names of resource classes
or of families of them. ``ranking_profile`` scores hosts by the policies of ``strategy_fit``, ``fragmentation`` by what
they do to devices; ``devices`` and ``group`` allocate inside one host, ``fabric`` over hosts; ``fair_share`` divides a
cloud; ``bundle_packing`` counts.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from os.path import commonprefix
from typing import TypeVar


class Budget:
    """A number of steps left to take, which bounds a search however hard the request is.

    A child, for part of a search, draws on its parent as well. Each search decides what a step is; searches that share
    a budget should have steps of about the same cost.

    >>> request = Budget(100)
    >>> tree = request.child(10)
    >>> tree.take(8), tree.take(8)
    (True, False)
    >>> tree.remaining, request.remaining, request.was_hit
    (0, 90, True)
    """

    __slots__ = ("_left", "_parent", "was_hit")

    def __init__(self, limit: int, parent: "Budget | None" = None) -> None:
        self._left = limit
        self._parent = parent
        self.was_hit = False
        """Whether more was asked for than was left, here or in a child; results may then be incomplete."""

    @property
    def remaining(self) -> int:
        """The number of steps left, here and in all parents."""
        return self._left if self._parent is None else min(self._left, self._parent.remaining)

    @property
    def is_used_up(self) -> bool:
        """Whether no steps are left."""
        return self.remaining <= 0

    def child(self, limit: int) -> "Budget":
        """Return a budget for part of the search."""
        return Budget(limit, self)

    def take(self, steps: int = 1) -> bool:
        """Take this many steps at once. If fewer are left, use those up and mark the budget and its parents as hit."""
        if self._left >= steps and (self._parent is None or self._parent.take(steps)):
            self._left -= steps
            return True
        remaining = self.remaining
        budget: Budget | None = self
        while budget is not None:
            budget._left -= remaining
            budget.was_hit = True
            budget = budget._parent
        return False


NaturalKey = tuple[tuple[str | int, ...], str]


@lru_cache(maxsize=4096)  # Names recur: a pool's with each host it serves, a host's each time the host is looked at.
def natural_key(name: str) -> NaturalKey:
    """Return a sort key that orders names as people would, numbers by value.

    >>> sorted(["dev10", "dev2", "dev1"], key=natural_key)
    ['dev1', 'dev2', 'dev10']
    """
    # Splitting at digits puts text at even and digits at odd positions, so values of the same type are compared.
    pieces = re.split(r"([0-9]+)", name)
    return tuple(int(piece) if place % 2 else piece for place, piece in enumerate(pieces)), name


def natural_order(names: Sequence[str]) -> tuple[int, ...]:
    """Return the indexes of names sorted by ``natural_key``; the sort is stable.

    >>> natural_order(["host1-dev10", "host1-dev2", "host1"])
    (2, 1, 0)
    """
    # Providers of hosts of one model have names that differ only in the host's, which all of them begin with.
    prefix = commonprefix(names)  # noqa: RUF071 - names are not paths
    start = len(prefix)
    if prefix[-1:].isdigit() and any([name[start : start + 1].isdigit() for name in names]):
        start = 0  # A number straddles the end of the prefix.
    return _order(tuple([name[start:] for name in names]))


@lru_cache(maxsize=4096)  # Which providers of a host of one model can serve differs from host to host.
def _order(names: tuple[str, ...]) -> tuple[int, ...]:
    keys = [natural_key(name) for name in names]
    return tuple(sorted(range(len(keys)), key=keys.__getitem__))


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


def exact(value: Number) -> Fraction:
    """Return a number exactly as written: 0.1 is one tenth, not the nearest binary fraction.

    >>> exact(0.1), exact(3)
    (Fraction(1, 10), Fraction(3, 1))
    """
    return Fraction(str(value)) if isinstance(value, float) else Fraction(value)


WILDCARD = "*"

NAME = re.compile(r"[A-Z0-9_]+")
"""A resource class, or a trait."""

_VENDOR_NAME = re.compile(r"(?=.*[./])[A-Za-z0-9][A-Za-z0-9._/-]*")

V = TypeVar("V")


def resource_class(name: str) -> str:
    """Return the resource class or family that a name or pattern denotes.

    A name of upper-case letters, digits and underscores stays as it is. A name with a dot or slash is a device
    plugin's, and is translated as os-resource-classes does it: upper case, each run of other characters an underscore,
    ``CUSTOM_`` in front. The vendor's domain stays, so that the "gpu" of two vendors do not collide. A trailing star
    makes a pattern for a family, which matches an empty ending too (RS-23, RS-24). Any other name is a ValueError.

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
    if NAME.fullmatch(stem):
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
