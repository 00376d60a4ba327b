"""Overlays on the cloud of a snapshot: what consumers would give back, and trees read with assumed changes."""

from collections import defaultdict
from collections.abc import Collection
from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING

from placement.candidates.overlaid import ChangedProvider, OverlaidReader
from placement.candidates.reading import Reader
from placement.domain.overlay import AS_IT_IS, Overlay
from placement.domain.planner_tree import Stock
from placement.store.allocations import held_by, supplies
from placement.store.connection.unit_of_work import Transaction
from placement.store.search.planner_trees import roots_of
from placement.store.search.summaries import tree_summaries

if TYPE_CHECKING:
    from placement.domain.quantities import ResourceAmounts


def released(tx: Transaction, consumer_uuids: Collection[str], overlay: Overlay = AS_IT_IS) -> Overlay:
    """Return an overlay in which consumers have given back all that they hold."""
    rows = sorted(held_by(tx, consumer_uuids), key=attrgetter("provider_id", "class_id"))
    names = tx.names.classes.names(tx.connection, {row.class_id for row in rows})
    for row in rows:
        overlay = overlay.releasing({row.provider_id: {names[row.class_id]: row.used}})
    return overlay


def emptied(tx: Transaction, roots: Collection[int], overlay: Overlay) -> Overlay:
    """Return an overlay in which some trees exist and are empty."""
    found = tree_summaries(tx, roots)
    used = {
        provider: {found.class_names[class_id]: -int(used) for class_id, *_capacity, used in of if used}
        for provider, of in found.stocks.items()
    }
    changes = {provider: of for provider, of in overlay.changes.items() if provider not in found.members}
    return replace(
        overlay,
        changes={**changes, **{provider: of for provider, of in used.items() if of}},
        avoided=overlay.avoided - {*roots},
        gone=overlay.gone - {*roots},
    )


class KnownStocks:
    """The stocks of providers that overlays change, each read once in a snapshot."""

    def __init__(self, tx: Transaction) -> None:
        self._tx = tx
        self._known: dict[int, ChangedProvider] = {}
        self._changed: dict[int, tuple[ResourceAmounts, ChangedProvider]] = {}
        """By provider, the last change asked about, and what it would have then: overlays grow one change at a time."""

    def under(self, overlay: Overlay) -> dict[int, ChangedProvider]:
        """Return what the providers that an overlay changes would have, and how much of it would be used."""
        self._read(overlay.changes.keys() - self._known.keys())
        for one, amounts in overlay.changes.items():
            last = self._changed.get(one)
            if last is None or last[0] != amounts:
                self._changed[one] = amounts, self._known[one].after(amounts)
        return {one: self._changed[one][1] for one in overlay.changes}

    def _read(self, unknown: Collection[int]) -> None:
        if not unknown:
            return
        roots = roots_of(self._tx, unknown)
        found = supplies(self._tx, sorted(unknown))
        names = self._tx.names.classes.names(self._tx.connection, {class_id for _, class_id in found})
        stocks: dict[int, dict[str, Stock]] = defaultdict(dict)
        for (provider, class_id), supply in found.items():
            has = supply.inventory
            stocks[provider][names[class_id]] = Stock(
                has.capacity, supply.used, has.min_unit, has.max_unit, has.step_size
            )
        # A deleted provider is in no tree; it stands as its own root.
        self._known |= {one: ChangedProvider(roots.get(one, one), stocks[one]) for one in unknown}


def overlaid(reader: Reader, overlay: Overlay, stocks: KnownStocks) -> Reader:
    """Return a reader of trees with an overlay applied; ``reader`` must spare the released providers."""
    return reader if overlay.is_empty else OverlaidReader(reader, overlay, stocks.under(overlay))
