"""Usage: how much of each resource class is taken."""

from dataclasses import dataclass

from placement.domain.quantities import ResourceAmounts


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
