"""Overlays on the cloud of a snapshot: what consumers would give back, and trees read with assumed changes."""

from collections.abc import Collection
from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING

from placement.candidates.overlaid import ChangedProvider, OverlaidReader
from placement.candidates.planner_trees import StocksByProvider
from placement.candidates.reading import Reader
from placement.cloud.columns import CloudColumns
from placement.domain.overlay import AS_IT_IS, Overlay
from placement.domain.planner_tree import NO_STOCKS
from placement.store.allocations import held_by
from placement.store.connection.unit_of_work import Transaction
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
    """The stocks of providers that overlays change.

    Args:
        tx: the snapshot.
        columns: what providers have in it.
    """

    def __init__(self, tx: Transaction, columns: CloudColumns) -> None:
        self._providers = columns.providers
        classes = tx.names.classes.names(tx.connection, columns.class_ids)
        self._stocks = StocksByProvider(columns, classes)
        self._known: dict[int, ChangedProvider] = {}
        self._changed: dict[int, tuple[ResourceAmounts, ChangedProvider]] = {}
        """By provider, the last change asked about, and what it would have then: overlays grow one change at a time."""

    def under(self, overlay: Overlay) -> dict[int, ChangedProvider]:
        """Return what the providers that an overlay changes would have, and how much of it would be used."""
        self._look_up(overlay.changes.keys() - self._known.keys())
        for one, amounts in overlay.changes.items():
            last = self._changed.get(one)
            if last is None or last[0] != amounts:
                self._changed[one] = amounts, self._known[one].after(amounts)
        return {one: self._changed[one][1] for one in overlay.changes}

    def _look_up(self, unknown: Collection[int]) -> None:
        at = self._providers.positions(sorted(unknown))
        at = at[at >= 0]
        stocks = self._stocks.at(at)
        roots = self._providers.roots[self._providers.trees[at]].tolist()
        root_of = dict(zip(self._providers.ids[at].tolist(), roots, strict=True))
        # A deleted provider is in no tree; it stands as its own root.
        self._known |= {one: ChangedProvider(root_of.get(one, one), stocks.get(one, NO_STOCKS)) for one in unknown}


def overlaid(reader: Reader, overlay: Overlay, stocks: KnownStocks) -> Reader:
    """Return a reader of trees with an overlay applied; ``reader`` must spare the released providers."""
    return reader if overlay.is_empty else OverlaidReader(reader, overlay, stocks.under(overlay))
