"""Overlays on the cloud of a snapshot: what consumers would give back, and trees read as they would be."""

from collections import defaultdict
from collections.abc import Collection
from operator import attrgetter

from placement.candidates.overlaid import OverlaidReader
from placement.candidates.reading import Reader
from placement.domain.overlay import AS_IT_IS, ChangedProvider, Overlay
from placement.domain.planner_tree import Stock
from placement.store.allocations import held_by, supplies
from placement.store.connection.unit_of_work import Transaction
from placement.store.search.planner_trees import roots_of


def released(tx: Transaction, consumer_uuids: Collection[str], overlay: Overlay = AS_IT_IS) -> Overlay:
    """Return an overlay in which consumers have given back all that they hold."""
    rows = sorted(held_by(tx, consumer_uuids), key=attrgetter("provider_id", "class_id"))
    names = tx.names.classes.names(tx.connection, {row.class_id for row in rows})
    for row in rows:
        overlay = overlay.releasing({row.provider_id: {names[row.class_id]: row.used}})
    return overlay


def overlaid(tx: Transaction, reader: Reader, overlay: Overlay) -> Reader:
    """Return a reader of trees as they would be with an overlay; ``reader`` spares the released providers."""
    return reader if overlay.is_empty else OverlaidReader(reader, overlay, changed_providers(tx, overlay))


def changed_providers(tx: Transaction, overlay: Overlay) -> dict[int, ChangedProvider]:
    """Read what an overlay changes."""
    roots = roots_of(tx, overlay.changes)
    found = supplies(tx, [provider for provider in overlay.changes if provider in roots])
    names = tx.names.classes.names(tx.connection, {class_id for _, class_id in found})
    stocks: dict[int, dict[str, Stock]] = defaultdict(dict)
    for (provider, class_id), supply in found.items():
        has, name = supply.inventory, names[class_id]
        used = supply.used + overlay.changes[provider].get(name, 0)
        stocks[provider][name] = Stock(has.capacity, used, has.min_unit, has.max_unit, has.step_size)
    return {provider: ChangedProvider(roots[provider], of_provider) for provider, of_provider in stocks.items()}
