"""A hypothetical cloud: changes to usage, exclusive holds and trees to avoid, relative to a snapshot."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from placement.domain.quantities import ResourceAmounts, summed

ProviderAmounts = Mapping[int, ResourceAmounts]
"""Provider id -> resource class -> amount."""


@dataclass(frozen=True, slots=True)
class MoreTrees:
    """Empty trees like another one: its root, and how many."""

    like: int
    count: int


@dataclass(frozen=True, slots=True)
class Overlay:
    """How the hypothetical cloud differs from a snapshot.

    Args:
        changes: the change in usage by provider and class; negative for less.
        held: places that would be held exclusively: nobody else takes anything in or below them.
        avoided: the roots of trees to leave out. Others may still take what these share with them.
        gone: the roots of those of them that share nothing either.
        more: empty trees besides; a view has them (``cloud.columns``), a search does not look into them.

    >>> overlay = Overlay().taking({7: {"VCPU": 2}}).releasing({7: {"VCPU": 3}, 8: {"PGPU": 1}})
    >>> overlay.changes, sorted(overlay.released)
    ({7: {'VCPU': -1}, 8: {'PGPU': -1}}, [7, 8])
    """

    changes: ProviderAmounts = field(default_factory=dict)
    held: frozenset[int] = frozenset()
    avoided: frozenset[int] = frozenset()
    gone: frozenset[int] = frozenset()
    more: tuple[MoreTrees, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether nothing differs."""
        return not (self.changes or self.held or self.avoided or self.more)

    @property
    def classes(self) -> set[str]:
        """The classes of which more or less is in use."""
        return {name for amounts in self.changes.values() for name in amounts}

    @property
    def released(self) -> frozenset[int]:
        """The providers with less in use of some class, which may be able to serve again."""
        less = [provider for provider, amounts in self.changes.items() if min(amounts.values(), default=0) < 0]
        return frozenset(less)

    def taking(self, amounts: ProviderAmounts, *, held: Collection[int] = ()) -> "Overlay":
        """Return a copy with more in use, and more places held exclusively."""
        changed = {provider: summed([self.changes.get(provider, {}), more]) for provider, more in amounts.items()}
        return replace(self, changes={**self.changes, **changed}, held=self.held.union(held))

    def releasing(self, amounts: ProviderAmounts) -> "Overlay":
        """Return a copy with less in use."""
        return self.taking(
            {provider: {name: -amount for name, amount in less.items()} for provider, less in amounts.items()}
        )

    def within(self, providers: Collection[int]) -> "Overlay":
        """Return a copy restricted to some providers, without avoided trees.

        >>> Overlay({7: {"VCPU": 1}, 8: {"VCPU": 2}}, frozenset({8, 9})).within([7, 9])
        Overlay(changes={7: {'VCPU': 1}}, held=frozenset({9}), avoided=frozenset(), gone=frozenset(), more=())
        """
        changed = {provider: self.changes[provider] for provider in providers if provider in self.changes}
        return Overlay(changed, self.held.intersection(providers))

    def avoiding(self, roots: Collection[int]) -> "Overlay":
        """Return a copy that avoids further trees."""
        return replace(self, avoided=self.avoided.union(roots))

    def without(self, roots: Collection[int]) -> "Overlay":
        """Return a copy in which further trees are gone, and whatever they share with others."""
        return replace(self, avoided=self.avoided.union(roots), gone=self.gone.union(roots))


AS_IT_IS = Overlay()
