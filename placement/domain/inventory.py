"""Inventory: how much of a resource class a provider has, and in which portions it can be allocated."""

from dataclasses import dataclass

UNBOUNDED = 2**31 - 1
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


@dataclass(frozen=True, slots=True)
class Inventory:
    """What one provider has of one resource class, in units of the class."""

    total: int
    reserved: int = 0
    min_unit: int = 1
    max_unit: int = UNBOUNDED
    step_size: int = 1
    allocation_ratio: float = 1.0

    @property
    def capacity(self) -> int:
        """The total that can be allocated."""
        return whole_capacity(self.total, self.reserved, self.allocation_ratio)

    def fits_units(self, amount: int) -> bool:
        """Tell whether an amount conforms to min_unit, max_unit and step_size."""
        return self.min_unit <= amount <= self.max_unit and amount % self.step_size == 0

    def fits(self, amount: int, used: int) -> bool:
        """Tell whether an amount can be allocated on top of ``used``."""
        return self.fits_units(amount) and used + amount <= self.capacity
