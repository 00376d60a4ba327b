"""Inventory: how much of a resource class a provider has, and in which portions it can be allocated."""

from dataclasses import dataclass

UNBOUNDED = 2**31 - 1


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
        """The total that can be allocated: excludes what is reserved; a ratio above 1 overcommits."""
        return int((self.total - self.reserved) * self.allocation_ratio)

    def fits_units(self, amount: int) -> bool:
        """Tell whether an amount conforms to min_unit, max_unit and step_size."""
        return self.min_unit <= amount <= self.max_unit and amount % self.step_size == 0

    def fits(self, amount: int, used: int) -> bool:
        """Tell whether an amount can be allocated on top of ``used``."""
        return self.fits_units(amount) and used + amount <= self.capacity
