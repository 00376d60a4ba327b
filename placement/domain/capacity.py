"""Whether claims fit: the unit and capacity rules of the inventories that they draw on."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from placement.domain.allocation import Place
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

    def __init__(self, place: Place, reason: str) -> None:
        super().__init__("Unable to allocate inventory: " + reason.format(*place))


@dataclass(frozen=True, slots=True)
class Supply:
    """An inventory and its total usage before the change."""

    inventory: Inventory
    used: int


def check_fit(
    portions: Iterable[tuple[Place, int]], supplies: Mapping[Place, Supply], freed: Mapping[Place, int]
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
    taken: Counter[Place] = Counter()
    for place, amount in portions:
        supply = supplies.get(place)
        if supply is None:
            raise DoesNotFit(place, _NO_INVENTORY)
        if not supply.inventory.fits_units(amount):
            raise DoesNotFit(place, _UNITS)
        taken[place] += amount
        used = supply.used - freed.get(place, 0) + taken[place]
        if used > max(supply.inventory.capacity, supply.used):
            raise DoesNotFit(place, _CAPACITY)
