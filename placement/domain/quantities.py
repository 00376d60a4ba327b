"""Amounts of resource classes, their sums and bounds, and as documents of Kubernetes write them: "1GiB", "8Gi"."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from fractions import Fraction
from math import ceil
from typing import NamedTuple

QUANTITY = r"(?P<number>[0-9]{1,18}(\.[0-9]{1,9})?)(?P<unit>([KMGTP]i?B?)?)"
"""A number and an optional unit of bytes: a power of 1024 with ``i``, of 1000 without."""

_POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}
_UNIT_OF_CLASS = {"_MB": 1024**2, "_GB": 1024**3, "_KB": 1024}

_IN_MANIFESTS = r"(?P<number>[0-9]{1,18}(\.[0-9]{1,9})?([eE][+-]?[0-9]{1,2})?)(?P<unit>n|u|m|k|[KMGTPE]i?B?|)"
_PARTS = {"n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000), "k": Fraction(1000)}


LARGEST_AMOUNT = 2**63 - 1
"""Nobody has more of a class, and no database counts further."""


def sum_of_amounts(earlier: int, amount: int) -> int:
    """Add two amounts of a class; ValueError if there is no such amount."""
    if earlier + amount > LARGEST_AMOUNT:
        raise ValueError(f"The amount is above {LARGEST_AMOUNT}.")
    return earlier + amount


def amount_in(resource_class: str, quantity: int | str) -> int:
    """Convert a quantity to the unit of a class, bytes rounded up; ValueError, with a suggestion, if it is none.

    >>> amount_in("MEMORY_MB", "1GiB"), amount_in("DISK_GB", "2T"), amount_in("VCPU", "4"), amount_in("MEMORY_MB", 512)
    (1024, 1863, 4, 512)
    """
    if isinstance(quantity, int):
        return quantity
    number, unit = _number_and_unit(QUANTITY, quantity)
    if unit:
        return ceil(number * _bytes(unit) / _bytes_in_one(resource_class, quantity))
    if number.denominator != 1:
        raise ValueError(f"{resource_class} is counted in whole units; write {ceil(number)} instead of {quantity}.")
    return int(number)


def quantity_in_manifest(name: str, resource_class: str, quantity: object) -> Fraction:
    """Convert what a manifest asks for of the resource ``name`` to the unit of a class, not rounded; or ValueError.

    As in Kubernetes, memory and storage without a unit are bytes. A resource that has the class's own name is counted
    as the class is.

    >>> quantity_in_manifest("cpu", "VCPU", "1500m"), quantity_in_manifest("MEMORY_MB", "MEMORY_MB", "1024")
    (Fraction(3, 2), Fraction(1024, 1))
    >>> quantity_in_manifest("memory", "MEMORY_MB", 1073741824), quantity_in_manifest("memory", "MEMORY_MB", "1.5Gi")
    (Fraction(1024, 1), Fraction(1536, 1))
    """
    number, unit = _number_and_unit(_IN_MANIFESTS, quantity)
    is_of_bytes = name != resource_class and resource_class.endswith(tuple(_UNIT_OF_CLASS))
    number *= _PARTS.get(unit) or _bytes(unit)
    in_bytes = is_of_bytes or unit not in {"", *_PARTS}
    return number / _bytes_in_one(resource_class, quantity) if in_bytes else number


def _number_and_unit(pattern: str, quantity: object) -> tuple[Fraction, str]:
    match = None if isinstance(quantity, bool) else re.fullmatch(pattern, str(quantity))
    if match is None:
        raise ValueError(f"{quantity!r} is not an amount; write a whole number, or bytes such as 8Gi.")
    return Fraction(match["number"]), match["unit"].removesuffix("B")


def _bytes_in_one(resource_class: str, quantity: object) -> int:
    for end, size in _UNIT_OF_CLASS.items():
        if resource_class.endswith(end):
            return size
    raise ValueError(f"{resource_class} is not counted in bytes; write a whole number instead of {quantity}.")


def _bytes(unit: str) -> int:
    base = 1024 if unit.endswith("i") else 1000
    return int(base ** _POWERS[unit.removesuffix("i")])


ResourceAmounts = Mapping[str, int]
"""Resource class -> amount."""


def summed(amounts: Iterable[ResourceAmounts]) -> dict[str, int]:
    """Add up amounts class by class.

    >>> summed([{"VCPU": 1, "PGPU": 1}, {"VCPU": 2}])
    {'VCPU': 3, 'PGPU': 1}
    """
    total: Counter[str] = Counter()
    for portion in amounts:
        total.update(portion)
    return dict(total)


LARGEST_CAPACITY = 2**45
"""Capacities are bounded: the columns allow far more than any integer of a database, let alone a sum of them, holds."""


def whole_capacity(total: int, reserved: int, allocation_ratio: float) -> int:
    """Return the total that can be allocated: excludes what is reserved; a ratio above 1 overcommits.

    >>> whole_capacity(8, 1, 1.5), whole_capacity(8, 0, 1e300), whole_capacity(0, 8, 1e300)
    (10, 35184372088832, -35184372088832)
    """
    capacity = (total - reserved) * allocation_ratio
    if -LARGEST_CAPACITY < capacity < LARGEST_CAPACITY:
        return int(capacity)
    return -LARGEST_CAPACITY if capacity < 0 else LARGEST_CAPACITY


class Scale(NamedTuple):
    """The units of a kind of amount, each ``step`` times the previous one."""

    step: int
    units: tuple[str, ...]


SCALES = {
    "_MB": Scale(1024, ("MiB", "GiB", "TiB", "PiB", "EiB")),
    "_GB": Scale(1024, ("GiB", "TiB", "PiB", "EiB")),
    "_KILOBIT_PER_SEC": Scale(1000, ("kbit/s", "Mbit/s", "Gbit/s", "Tbit/s", "Pbit/s")),
    "_KILOPACKET_PER_SEC": Scale(1000, ("kpacket/s", "Mpacket/s", "Gpacket/s", "Tpacket/s")),
}
"""Suffix of a resource class's name -> the scale of its amounts; the first unit is the class's own."""


def with_separators(value: float) -> str:
    """Return a number with thousands separators, and one decimal unless it is whole."""
    if isinstance(value, float) and not value.is_integer():
        return f"{value:,.1f}"
    return f"{int(value):,}"


def amount_in_words(value: float, class_name: str) -> str:
    """Return an amount of a resource class for people: in a suitable unit, with about three digits.

    >>> amount_in_words(131072, "MEMORY_MB"), amount_in_words(1_600_000_000, "NET_BW_EGR_KILOBIT_PER_SEC")
    ('128 GiB', '1.6 Tbit/s')
    """
    scale = next((scale for end, scale in SCALES.items() if class_name.endswith(end)), None)
    if scale is None:
        return with_separators(value)
    last = len(scale.units) - 1
    power, scaled = 0, float(value)
    while power < last and round(abs(scaled)) >= scale.step:
        power, scaled = power + 1, scaled / scale.step
    digits = 0 if abs(scaled) >= 100 else 1 if abs(scaled) >= 10 else 2
    shown = f"{scaled:,.{digits}f}"
    return f"{shown.rstrip('0').rstrip('.') if digits else shown} {scale.units[power]}"


def amounts_in_words(amounts: Mapping[str, float]) -> list[str]:
    """Return amounts by class for people."""
    return [f"{amount_in_words(amount, name)} {name}" for name, amount in amounts.items()]


def differences_in_words(differences: Mapping[str, float]) -> list[str]:
    """Return amounts with their signs, in the order of the classes."""
    return [f"{'+' if by > 0 else ''}{amount_in_words(by, name)} {name}" for name, by in sorted(differences.items())]


def class_held_most(usage: Mapping[str, int], totals: Mapping[str, int]) -> str:
    """Return the class of which the largest fraction is held."""
    held = {name: amount / totals[name] if totals[name] else float("inf") for name, amount in usage.items() if amount}
    return max(held, key=lambda name: held[name], default="")
