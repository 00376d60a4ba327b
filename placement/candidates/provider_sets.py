"""The sets of providers that meet conditions, as the search asks for them."""

from collections.abc import Collection, Mapping
from typing import Protocol

from placement.cloud.columns import CloudView
from placement.cloud.providers import Flags, ProviderColumns


class ProviderSets(Protocol):
    """The sets of providers that meet conditions, as flags by position in a cloud's columns."""

    def read_traits(self, trait_ids: Collection[int]) -> None:
        """Find out who has each of some traits."""

    def read_aggregates(self, aggregate_ids: Collection[int]) -> None:
        """Find out who is in each of some aggregates."""

    def with_trait(self, trait_id: int) -> Flags:
        """Return who has a trait."""

    def in_aggregate(self, aggregate_id: int) -> Flags:
        """Return who is in an aggregate."""

    def aggregates_of(self, providers: Collection[int]) -> Mapping[int, Collection[int]]:
        """Return the aggregates of some providers, given by id."""


class SetsInView:
    """The sets of providers in a cloud as it would be."""

    def __init__(self, sets: ProviderSets, view: CloudView, real: ProviderColumns) -> None:
        self._sets = sets
        self._view = view
        self._real = real

    def read_traits(self, trait_ids: Collection[int]) -> None:
        """Find out who has each of some traits."""
        self._sets.read_traits(trait_ids)

    def with_trait(self, trait_id: int) -> Flags:
        """Return who has a trait."""
        return self._sets.with_trait(trait_id)[self._view.origin]

    def in_aggregate(self, aggregate_id: int) -> Flags:
        """Return who is in an aggregate."""
        return self._sets.in_aggregate(aggregate_id)[self._view.origin]

    def read_aggregates(self, aggregate_ids: Collection[int]) -> None:
        """Find out who is in each of some aggregates."""
        self._sets.read_aggregates(aggregate_ids)

    def aggregates_of(self, providers: Collection[int]) -> Mapping[int, Collection[int]]:
        """Return the aggregates of some providers, given by id."""
        at = self._view.columns.providers.positions([*providers])
        originals = dict(zip(providers, self._real.ids[self._view.origin[at]].tolist(), strict=True))
        aggregates = self._sets.aggregates_of({*originals.values()})
        return {provider: aggregates.get(original, ()) for provider, original in originals.items()}
