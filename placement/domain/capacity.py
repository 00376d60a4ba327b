"""Whether claims fit: the unit and capacity rules of the inventories that they draw on."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from placement.domain.allocation import StockName
from placement.domain.inventory import Inventory
from placement.errors import Conflict

# Clients match on these sentences, so they are worded as the reference's are.
_NO_INVENTORY = "Inventory for '{1}' on resource provider '{0}' invalid."
_UNITS = (
    "Unable to create allocation for '{1}' on resource provider '{0}'. "
    "The requested amount would violate inventory constraints."
)
_CAPACITY = (
    "Unable to create allocation for '{1}' on resource provider '{0}'. The requested amount would exceed the capacity."
)


class DoesNotFit(Conflict):
    """The inventory of a provider does not allow what is asked for."""

    def __init__(self, stock: StockName, reason: str) -> None:
        super().__init__("Unable to allocate inventory: " + reason.format(*stock))


@dataclass(frozen=True, slots=True)
class Supply:
    """An inventory and its total usage before the change."""

    inventory: Inventory
    used: int


def check_fit(
    portions: Iterable[tuple[StockName, int]], supplies: Mapping[StockName, Supply], freed: Mapping[StockName, int]
) -> None:
    """Refuse portions that break the rules of their inventories.

    A provider that is over capacity, because its inventory shrank, still accepts a change that does not increase its
    usage; otherwise nothing could be moved away from it step by step.

    Args:
        portions: the amounts to take.
        supplies: the inventories; nothing can be taken where there is none.
        freed: what the same change gives back.

    Raises:
        DoesNotFit: for the first portion that does not fit.
    """
    taken: Counter[StockName] = Counter()
    for stock, amount in portions:
        supply = supplies.get(stock)
        if supply is None:
            raise DoesNotFit(stock, _NO_INVENTORY)
        if not supply.inventory.fits_units(amount):
            raise DoesNotFit(stock, _UNITS)
        taken[stock] += amount
        used = supply.used - freed.get(stock, 0) + taken[stock]
        if used > max(supply.inventory.capacity, supply.used):
            raise DoesNotFit(stock, _CAPACITY)
