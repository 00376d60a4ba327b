"""Providers, the nodes of a cloud's trees; their inventories; and what consumers hold or want to hold of these."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from placement.domain.quantities import ResourceAmounts, whole_capacity
from placement.errors import Conflict


@dataclass(frozen=True, slots=True)
class Provider:
    """A resource provider as stored. A root has no parent and is its own root; ``modified`` is naive UTC."""

    id: int
    uuid: str
    name: str
    generation: int
    root_id: int
    root_uuid: str
    parent_id: int | None = None
    parent_uuid: str | None = None
    modified: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderFilter:
    """Which providers to list. All conditions must hold, each for the provider alone.

    It must have a trait of each set in ``required``, be in an aggregate of each set in ``member_of``, and match nothing
    that is forbidden. ``in_tree`` is the uuid of any provider of its tree.
    """

    name: str | None = None
    uuid: str | None = None
    in_tree: str | None = None
    resources: Mapping[str, int] = field(default_factory=dict)
    required: Sequence[frozenset[str]] = ()
    forbidden: frozenset[str] = frozenset()
    member_of: Sequence[frozenset[str]] = ()
    forbidden_aggregates: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Move:
    """Where to move a provider with its subtree: under another one, or (None) to the root of a tree of its own.

    Unless ``from_anywhere``, only a provider that has no parent yet may move.
    """

    parent_uuid: str | None
    from_anywhere: bool


StockName = tuple[str, str]
"""A provider's uuid and the name of a resource class; ``StockKey`` has their ids."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What one consumer is to hold from now on, replacing everything it holds: by provider uuid and class.

    A type of None keeps the present one. A generation of None, if it is checked, means a consumer that must not exist
    yet.
    """

    consumer_uuid: str
    allocations: Mapping[str, ResourceAmounts]
    project_id: str
    user_id: str
    consumer_type: str | None = None
    checks_generation: bool = False
    consumer_generation: int | None = None

    def portions(self) -> Iterator[tuple[StockName, int]]:
        """Yield each amount with the name of the stock to take it from."""
        for provider_uuid, resources in self.allocations.items():
            for class_name, amount in resources.items():
                yield (provider_uuid, class_name), amount


@dataclass(frozen=True, slots=True)
class Share:
    """What a consumer holds of a provider, and the generation of the one that an answer lists."""

    generation: int
    resources: dict[str, int]


@dataclass(frozen=True, slots=True)
class ConsumerAllocations:
    """Everything one consumer holds. ``modified`` is naive UTC, or None if it was not recorded."""

    shares: Mapping[str, Share]
    project_id: str
    user_id: str
    consumer_generation: int
    consumer_type: str | None
    modified: datetime | None


@dataclass(frozen=True, slots=True)
class ProviderAllocations:
    """Everything held of one provider, by consumer uuid."""

    generation: int
    shares: Mapping[str, Share]
    modified: datetime | None


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
        """The total that can be allocated."""
        return whole_capacity(self.total, self.reserved, self.allocation_ratio)

    def fits_units(self, amount: int) -> bool:
        """Tell whether an amount conforms to min_unit, max_unit and step_size."""
        return self.min_unit <= amount <= self.max_unit and amount % self.step_size == 0

    def fits(self, amount: int, used: int) -> bool:
        """Tell whether an amount can be allocated on top of ``used``."""
        return self.fits_units(amount) and used + amount <= self.capacity


@dataclass(frozen=True, slots=True)
class ProviderUsage:
    """The usage of each class that a provider has inventory of."""

    generation: int
    amounts: ResourceAmounts


@dataclass(frozen=True, slots=True)
class TypeUsage:
    """What the consumers of one type hold, and how many there are."""

    amounts: ResourceAmounts
    consumers: int


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
    """Refuse portions that break the rules of their inventories (DoesNotFit), given what the same change gives back.

    A provider that is over capacity, because its inventory shrank, still accepts a change that does not increase its
    usage; otherwise nothing could be moved away from it step by step.
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
