"""One provider tree as the planner sees it: who can serve what, where in the machine that is, and what is in use."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from placement.domain.ancestry import with_all_above
from placement.domain.inventory import UNBOUNDED
from placement.domain.overlay import Overlay
from placement.domain.places import NOWHERE, Places, Position


@dataclass(frozen=True, slots=True)
class Stock:
    """What a provider has of a resource class, how much of that is in use, and in which units it comes.

    The units are those of the inventory where they have been read, or else do not restrict anything.
    """

    capacity: int
    used: int
    min_unit: int = 1
    max_unit: int = UNBOUNDED
    step_size: int = 1

    @property
    def least(self) -> int:
        """The least that may be taken at once."""
        return -(-self.min_unit // self.step_size) * self.step_size

    def taken(self, amount: int) -> "Stock":
        """Return it with so much more in use."""
        if not amount:
            return self
        # Not by ``replace``, which takes three times as long: it is asked for each stock that a member takes from.
        return Stock(self.capacity, self.used + amount, self.min_unit, self.max_unit, self.step_size)

    def allows(self, amount: int) -> bool:
        """Tell whether so much more may be taken at once."""
        is_unit = self.min_unit <= amount <= self.max_unit and amount % self.step_size == 0
        return is_unit and self.used + amount <= self.capacity


class ProviderStocks(dict[str, Stock]):
    """The stocks of a provider by class, which are not changed; providers that have the same may share them.

    They are hashed once: what tells hosts apart is made of them (``candidates.alike_hosts``).
    """

    @cached_property
    def _hash(self) -> int:
        return hash(frozenset(self.items()))

    def __hash__(self) -> int:  # type: ignore[override]  # a dictionary has none
        return self._hash


NO_STOCKS = ProviderStocks()


@dataclass(slots=True)
class PlannerTree:
    """The providers of one tree, and of those that share with it, in detail.

    Args:
        root: the id of the root provider.
        parents: the parent of each provider.
        names: the name of each provider.
        traits: the traits of each provider that has any.
        stocks: the inventories of each provider that has any, by class.
        positions: the anchor of the place of each provider at each level.
        places: the same places as masks, of the tree's own providers.
        foreign_providers: those of other trees.
        held: places that are held exclusively, whatever is in use there.
    """

    root: int
    parents: Mapping[int, int | None]
    names: Mapping[int, str]
    traits: Mapping[int, frozenset[str]] = field(default_factory=dict)
    stocks: Mapping[int, ProviderStocks] = field(default_factory=dict)
    positions: Mapping[int, Position] = field(default_factory=dict)
    places: Places = NOWHERE
    foreign_providers: Collection[int] = frozenset()
    held: Collection[int] = frozenset()

    def own(self, providers: Iterable[int]) -> list[int]:
        """Return those providers that are of the tree itself."""
        return [provider for provider in providers if provider not in self.foreign_providers]

    def totals(self) -> tuple[dict[str, int], dict[str, int]]:
        """Return what the tree itself has of each class, and what of that is in use."""
        capacity: dict[str, int] = {}
        used: dict[str, int] = {}
        for provider in self.own(self.stocks):
            for name, stock in self.stocks[provider].items():
                capacity[name] = capacity.get(name, 0) + stock.capacity
                used[name] = used.get(name, 0) + stock.used
        return capacity, used

    def left(self) -> dict[int, dict[str, int]]:
        """Return what each of the tree's own providers has left of each class."""
        own = self.own(self.stocks)
        return {one: {name: stock.capacity - stock.used for name, stock in self.stocks[one].items()} for one in own}

    def under(self, overlay: Overlay) -> "PlannerTree":
        """Return the tree as it would be."""
        changed = overlay.changes.keys() & self.stocks.keys()
        if not changed and not overlay.held:
            return self
        stocks = {
            provider: ProviderStocks(
                (name, stock.taken(overlay.changes[provider].get(name, 0)))
                for name, stock in self.stocks[provider].items()
            )
            for provider in changed
        }
        return replace(self, stocks={**self.stocks, **stocks}, held=overlay.held)

    def in_use(self) -> set[int]:
        """Return the providers of which, or below which, anything is allocated."""
        used = [one for one, stocks in self.stocks.items() if any(stock.used for stock in stocks.values())]
        return with_all_above(used, self.parents)
