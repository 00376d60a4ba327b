"""Usage: how much of each resource class is taken."""

from collections.abc import Mapping
from dataclasses import dataclass

Amounts = Mapping[str, int]
"""Amounts by the name of the resource class."""


@dataclass(frozen=True, slots=True)
class ProviderUsage:
    """What is taken of each class that a provider has inventory of."""

    generation: int
    amounts: Amounts


@dataclass(frozen=True, slots=True)
class TypeUsage:
    """What the consumers of one type hold, and how many they are."""

    amounts: Amounts
    consumers: int
