"""A cloud as it would be: what would be in use besides what is, or no longer, and which trees are left out."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from placement.domain.amounts import ResourceAmounts, summed

ProviderAmounts = Mapping[int, ResourceAmounts]
"""Provider id -> resource class -> amount."""


@dataclass(frozen=True, slots=True)
class Overlay:
    """What would differ from the cloud as a snapshot has it.

    Args:
        changes: by how much more of each class of a provider would be in use; negative for less.
        held: places that would be held exclusively: nobody else takes anything in or below them.
        avoided: the roots of trees that are left out.

    >>> overlay = Overlay().taking({7: {"VCPU": 2}}).releasing({7: {"VCPU": 3}, 8: {"PGPU": 1}})
    >>> overlay.changes, sorted(overlay.released)
    ({7: {'VCPU': -1}, 8: {'PGPU': -1}}, [7, 8])
    """

    changes: ProviderAmounts = field(default_factory=dict)
    held: frozenset[int] = frozenset()
    avoided: frozenset[int] = frozenset()

    @property
    def is_empty(self) -> bool:
        """Whether the cloud is left as it is."""
        return not (self.changes or self.held or self.avoided)

    @property
    def released(self) -> frozenset[int]:
        """The providers of which less would be in use: they may serve though they cannot now."""
        return frozenset(one for one, amounts in self.changes.items() if min(amounts.values(), default=0) < 0)

    def change(self, provider: int, resource_class: str) -> int:
        """Return by how much more of a class of a provider would be in use."""
        return self.changes.get(provider, {}).get(resource_class, 0)

    def taking(self, amounts: ProviderAmounts, *, held: Collection[int] = ()) -> "Overlay":
        """Return this with more in use, and places held exclusively."""
        changed = {one: summed([self.changes.get(one, {}), of_one]) for one, of_one in amounts.items()}
        return Overlay({**self.changes, **changed}, self.held.union(held), self.avoided)

    def releasing(self, amounts: ProviderAmounts) -> "Overlay":
        """Return this with less in use."""
        return self.taking({one: {name: -amount for name, amount in of.items()} for one, of in amounts.items()})

    def within(self, providers: Collection[int]) -> "Overlay":
        """Return the part of this that concerns some providers; no tree is left out.

        >>> Overlay({7: {"VCPU": 1}, 8: {"VCPU": 2}}, frozenset({8, 9})).within([7, 9])
        Overlay(changes={7: {'VCPU': 1}}, held=frozenset({9}), avoided=frozenset())
        """
        changed = {one: self.changes[one] for one in providers if one in self.changes}
        return Overlay(changed, self.held.intersection(providers))

    def avoiding(self, roots: Collection[int]) -> "Overlay":
        """Return this with further trees left out."""
        return replace(self, avoided=self.avoided.union(roots))


AS_IT_IS = Overlay()
