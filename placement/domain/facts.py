"""Facts: everything about a cloud that one request names, as the input of explanations."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Final

Stocks = Sequence[tuple[int, int, int, float, int, int, int]]
"""The stocks of providers of one resource class: class, provider, root, what is left, min_unit, max_unit, step_size.

What is left is capacity minus usage. Plain tuples, as there may be a hundred thousand.
"""

PROVIDER: Final = 1
ROOT: Final = 2
LEFT: Final = 3
"""The indices of some columns of ``Stocks``."""


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts about providers (by id), keyed by the names in the request.

    Args:
        stocks: resource class -> the stock of each provider.
        owners: trait -> the providers that have it.
        members: aggregate -> the providers in it.
        root_of: the root of each provider that occurs here.
        parents: the parent of every provider of the cloud; empty if the request does not need to know.
        roots: ``in_tree`` -> the root of that tree; unknown providers are absent.
        shares: sharing provider -> the roots of all trees that it serves.
        held: the providers inside places that are held exclusively.
    """

    stocks: Mapping[str, Stocks] = field(default_factory=dict)
    owners: Mapping[str, AbstractSet[int]] = field(default_factory=dict)
    members: Mapping[str, AbstractSet[int]] = field(default_factory=dict)
    root_of: Mapping[int, int] = field(default_factory=dict)
    parents: Mapping[int, int | None] = field(default_factory=dict)
    roots: Mapping[str, int] = field(default_factory=dict)
    shares: Mapping[int, Sequence[int]] = field(default_factory=dict)
    held: AbstractSet[int] = frozenset()

    def of_tree(self, root: int) -> "Facts":
        """Restrict the facts to one tree and the providers that share with it."""
        pools = {provider for provider, roots in self.shares.items() if root in roots}
        return replace(self.of_providers(pools | self.inside({root})), shares={provider: [root] for provider in pools})

    def of_providers(self, some: AbstractSet[int]) -> "Facts":
        """Restrict the facts to some providers."""
        return Facts(
            stocks={name: [row for row in rows if row[PROVIDER] in some] for name, rows in self.stocks.items()},
            owners={name: owners & some for name, owners in self.owners.items()},
            members={name: members & some for name, members in self.members.items()},
            root_of={provider: self.root_of[provider] for provider in some},
            parents={provider: self.parents[provider] for provider in some & self.parents.keys()},
            roots=self.roots,
            shares={provider: self.shares[provider] for provider in some & self.shares.keys()},
            held=self.held & some,
        )

    def inside(self, roots: AbstractSet[int | None]) -> set[int]:
        """Return the providers of some trees."""
        return {provider for provider, root in self.root_of.items() if root in roots}

    def owners_of_any(self, any_of: AbstractSet[str]) -> AbstractSet[int]:
        """Return the providers that have any trait of a set."""
        return _union([self.owners.get(name, frozenset()) for name in sorted(any_of)])

    def members_of_any(self, any_of: AbstractSet[str]) -> AbstractSet[int]:
        """Return the providers that are in any aggregate of a set."""
        return _union([self.members.get(name, frozenset()) for name in sorted(any_of)])

    def trees_with(self, providers: AbstractSet[int], sharing: AbstractSet[int] = frozenset()) -> set[int]:
        """Return the roots of the trees of some providers, and of the trees that sharing providers serve."""
        return set(map(self.root_of.__getitem__, providers)).union(*[self.shares[provider] for provider in sharing])


def _union(sets: list[AbstractSet[int]]) -> AbstractSet[int]:
    return sets[0] if len(sets) == 1 else frozenset().union(*sets)
