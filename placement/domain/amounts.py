"""Amounts of resource classes, and their sums."""

from collections import Counter
from collections.abc import Iterable, Mapping

ResourceAmounts = Mapping[str, int]
"""Resource class -> amount."""


def summed(amounts: Iterable[ResourceAmounts]) -> dict[str, int]:
    """Add up amounts class by class.

    >>> summed([{"VCPU": 1, "PGPU": 1}, {"VCPU": 2}])
    {'VCPU': 3, 'PGPU': 1}
    """
    total: Counter[str] = Counter()
    for one in amounts:
        total.update(one)
    return dict(total)
