"""Overlays on the cloud of a snapshot: what consumers would give back, and trees read with assumed changes."""

from collections.abc import Collection
from dataclasses import replace
from operator import attrgetter

from placement.domain.overlay import AS_IT_IS, Overlay
from placement.store.allocations import held_by
from placement.store.connection.unit_of_work import Transaction
from placement.store.search.summaries import tree_summaries


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
