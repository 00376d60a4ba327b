"""Allocations: what consumers hold, or want to hold, of providers' inventories."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from placement.domain.quantities import ResourceAmounts

StockName = tuple[str, str]
"""A provider's uuid and the name of a resource class; ``StockKey`` has their ids."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What one consumer is to hold from now on, replacing everything it holds.

    Args:
        consumer_uuid: the consumer.
        allocations: provider uuid -> resources; empty to release everything.
        project_id, user_id: the consumer's owner.
        consumer_type: the type to set; None keeps the present one.
        checks_generation: whether the consumer must be at ``consumer_generation``.
        consumer_generation: the generation that the client knows; None for a consumer that must not exist yet.
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
class ProviderShare:
    """What one consumer holds of one provider, and the provider's generation."""

    generation: int
    resources: dict[str, int]


@dataclass(frozen=True, slots=True)
class ConsumerAllocations:
    """Everything one consumer holds. ``modified`` is naive UTC, or None if it was not recorded."""

    shares: Mapping[str, ProviderShare]
    project_id: str
    user_id: str
    consumer_generation: int
    consumer_type: str | None
    modified: datetime | None


@dataclass(frozen=True, slots=True)
class ConsumerShare:
    """What one consumer holds of a provider, and the consumer's generation."""

    generation: int
    resources: dict[str, int]


@dataclass(frozen=True, slots=True)
class ProviderAllocations:
    """Everything held of one provider, by consumer uuid."""

    generation: int
    shares: Mapping[str, ConsumerShare]
    modified: datetime | None
