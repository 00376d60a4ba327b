"""What the rows of providers say: their stocks and traits by name, one object for all providers with equal rows.

A cloud has thousands of providers, but few different rows: building an object for each would take longer than reading
them, and canonical forms compare equal objects fastest if they are the same one.
"""

from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from placement.domain.inventory import Inventory
from placement.domain.places import Levels, level_bits
from placement.domain.planner_tree import ProviderStocks, Stock
from placement.store.connection.unit_of_work import Transaction
from placement.store.search.tree_rows import Relevant, StockWithUnits, TreeRows


class Deciding(NamedTuple):
    """The names of the classes and traits to read; None for all."""

    classes: Collection[str] | None = None
    traits: Collection[str] | None = None


def relevant(tx: Transaction, levels: Levels, deciding: Deciding) -> Relevant:
    """Return the ids of the classes and traits to read, with the traits of levels."""
    classes, traits = deciding
    return Relevant(
        None if classes is None else tx.names.classes.ids(tx.connection, {*classes}).values(),
        None if traits is None else tx.names.traits.ids(tx.connection, {*levels.traits, *traits}).values(),
    )


def level_ids(tx: Transaction, levels: Levels) -> list[int | None]:
    """Return the ids of the traits of levels, None for one that does not exist."""
    ids = tx.names.traits.ids(tx.connection, {*levels.traits})
    return [ids.get(trait) for trait in levels.traits]


def anchors_in(traits: Mapping[int, Sequence[int]], levels: Sequence[int | None]) -> dict[int, int]:
    """Return the anchors among providers, given their trait ids, with the levels of their places as bits."""
    bits_of = cache(lambda of_provider: level_bits(of_provider, levels))
    return {provider: bits for provider, of in traits.items() if (bits := bits_of(tuple(of)))}


class InternedRows:
    """The stocks and traits read so far, one object for all providers with equal rows.

    Args:
        tx: reads the names.
    """

    def __init__(self, tx: Transaction) -> None:
        self._tx = tx
        self.class_names: dict[int, str] = {}
        self.trait_names: dict[int, str] = {}
        self._stocks: dict[object, ProviderStocks] = {}
        self._traits: dict[tuple[int, ...], frozenset[str]] = {}

    def learn_names(self, rows: TreeRows) -> None:
        """Read the names of all classes and traits that are not known yet."""
        classes = {row[0] for of in rows.stocks.values() for row in of} - self.class_names.keys()
        traits = {trait for of in rows.traits.values() for trait in of} - self.trait_names.keys()
        self.class_names.update(self._tx.names.classes.names(self._tx.connection, classes))
        self.trait_names.update(self._tx.names.traits.names(self._tx.connection, traits))

    def stocks(self, rows: TreeRows) -> dict[int, ProviderStocks]:
        """Return the stocks of each provider that has any."""
        names, known, stocks = self.class_names, self._stocks, {}
        for provider, of in rows.stocks.items():
            key = tuple(of)
            of_rows = known.get(key)
            if of_rows is None:
                of_rows = known[key] = ProviderStocks((names[row[0]], _stock(StockWithUnits(*row))) for row in of)
            stocks[provider] = of_rows
        return stocks

    def traits(self, rows: TreeRows) -> dict[int, frozenset[str]]:
        """Return the traits of each provider that has any."""
        names, known, traits = self.trait_names, self._traits, {}
        for provider, ids in rows.traits.items():
            key = tuple(ids)
            of_rows = known.get(key)
            if of_rows is None:
                of_rows = known[key] = frozenset(names[trait] for trait in ids)
            traits[provider] = of_rows
        return traits


def _stock(row: StockWithUnits) -> Stock:
    capacity = Inventory(row.total, row.reserved, allocation_ratio=row.allocation_ratio).capacity
    return Stock(capacity, int(row.used), row.min_unit, row.max_unit, row.step_size)
