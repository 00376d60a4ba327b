"""Parses amounts as Kubernetes and its plugins' documents write them: 4, "4", "1GiB", "8Gi"."""

import re
from fractions import Fraction

QUANTITY = r"(?P<number>[0-9]{1,18}(\.[0-9]{1,9})?)(?P<unit>([KMGTP]i?B?)?)"
"""A number and an optional unit of bytes: a power of 1024 with ``i``, of 1000 without."""

_POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5}
_UNIT_OF_CLASS = {"_MB": 1024**2, "_GB": 1024**3, "_KB": 1024}


def amount_in(resource_class: str, quantity: int | str) -> int:
    """Convert a quantity to the unit of a resource class; bytes are rounded up.

    Raises:
        ValueError: it has a unit but the class is not counted in bytes, or it is not a whole number. The text suggests
            what to write instead.

    >>> amount_in("MEMORY_MB", "1GiB"), amount_in("DISK_GB", "2T"), amount_in("VCPU", "4"), amount_in("MEMORY_MB", 512)
    (1024, 1863, 4, 512)
    """
    if isinstance(quantity, int):
        return quantity
    match = re.fullmatch(QUANTITY, quantity)
    if match is None:
        raise ValueError(f"{quantity!r} is no amount; write a whole number, or bytes such as 8Gi.")
    number, unit = Fraction(match["number"]), match["unit"].removesuffix("B")
    if not unit:
        if number.denominator != 1:
            raise ValueError(
                f"{resource_class} is counted in whole units; write {-(-number // 1)} instead of {quantity}."
            )
        return int(number)
    of_class = next((size for end, size in _UNIT_OF_CLASS.items() if resource_class.endswith(end)), None)
    if of_class is None:
        raise ValueError(f"{resource_class} is not counted in bytes; write a whole number instead of {quantity}.")
    base = 1024 if unit.endswith("i") else 1000
    return int(-(-number * base ** _POWERS[unit.removesuffix("i")] // of_class))
