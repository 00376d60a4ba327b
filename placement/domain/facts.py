"""Facts: everything about a cloud that one request names, as the input of explanations."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import NamedTuple


class EqualStocks(NamedTuple):
    """The providers that have equal stocks of a resource class; most of a cloud has the same as many others.

    Args:
        left: capacity minus usage.
        min_unit, max_unit, step_size: which amounts may be taken.
        providers: who has this.
    """

    left: float
    min_unit: int
    max_unit: int
    step_size: int
    providers: Sequence[int]

    @property
    def numbers(self) -> tuple[float, int, int, int]:
        """What is equal."""
        return self[:4]

    @property
    def most(self) -> int:
        """The largest amount that can be taken from one of the providers; 0 if none can."""
        amount = int(min(self.left, self.max_unit)) // self.step_size * self.step_size
        return amount if amount >= self.min_unit else 0


Stocks = Sequence[EqualStocks]
"""The stocks of one resource class."""


def owners_in(stocks: Stocks) -> frozenset[int]:
    """Return the providers that have any inventory of a class."""
    return frozenset().union(*[equal.providers for equal in stocks])


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts about providers (by id), keyed by the names in the request.

    Args:
        stocks: resource class -> the stocks of providers.
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
            stocks={name: _stocks_of(some, stocks) for name, stocks in self.stocks.items()},
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


def _stocks_of(some: AbstractSet[int], stocks: Stocks) -> Stocks:
    kept = [equal._replace(providers=[one for one in equal.providers if one in some]) for equal in stocks]
    return [equal for equal in kept if equal.providers]


def _union(sets: list[AbstractSet[int]]) -> AbstractSet[int]:
    return sets[0] if len(sets) == 1 else frozenset().union(*sets)
