"""Changes to the cloud that a client wants assumed: what is gone, given back, or added."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

from placement.domain.overlay import AS_IT_IS, MoreTrees, Overlay
from placement.errors import InvalidAt
from placement.store.allocations import held_by
from placement.store.connection.database import Transaction
from placement.store.search.names import roots_by_aggregate, roots_of_providers
from placement.store.search.summaries import tree_summaries


@dataclass(frozen=True, slots=True)
class Changes:
    """Assumed changes to the cloud, none of which is written.

    Args:
        without: trees that are gone, given by any of their providers or by an aggregate of one of them.
        more: hypothetical, empty trees: a provider whose tree they are modelled on, and how many.
        released: consumers that have given back everything they hold.
    """

    without: Sequence[str] = ()
    more: Sequence[tuple[str, int]] = ()
    released: Sequence[str] = ()


AS_THEY_ARE = Changes()


def overlay_of(tx: Transaction, changes: Changes, overlay: Overlay = AS_IT_IS) -> Overlay:
    """Put changes on top of an overlay. A consumer without allocations gives nothing back.

    Raises:
        InvalidAt: there is no such provider or aggregate.
    """
    overlay = released(tx, changes.released, overlay) if changes.released else overlay
    if changes.without:
        of_providers = roots_of_providers(tx, changes.without)
        of_aggregates = roots_by_aggregate(tx)
        for number, uuid in enumerate(changes.without):
            if uuid not in of_providers and uuid not in of_aggregates:
                raise InvalidAt(("without", number), f"There is no provider {uuid}, and no aggregate.")
            gone = of_aggregates[uuid] if uuid in of_aggregates else {of_providers[uuid]}
            overlay = overlay.without(gone)
    return replace(overlay, more=(*overlay.more, *_more_trees(tx, changes))) if changes.more else overlay


def _more_trees(tx: Transaction, changes: Changes) -> list[MoreTrees]:
    roots = roots_of_providers(tx, [uuid for uuid, _count in changes.more])
    for number, (uuid, _count) in enumerate(changes.more):
        if uuid not in roots:
            raise InvalidAt(("with", number, "like"), f"There is no provider {uuid}.")
    return [MoreTrees(roots[uuid], count) for uuid, count in changes.more]


def released(tx: Transaction, consumer_uuids: Collection[str], overlay: Overlay = AS_IT_IS) -> Overlay:
    """Return an overlay in which consumers have given back all that they hold."""
    rows = sorted(held_by(tx, consumer_uuids), key=attrgetter("provider_id", "class_id"))
    names = tx.names.classes.names(tx.connection, {row.class_id for row in rows})
    for row in rows:
        overlay = overlay.releasing({row.provider_id: {names[row.class_id]: row.used}})
    return overlay


def emptied(tx: Transaction, roots: Collection[int], overlay: Overlay) -> Overlay:
    """Return an overlay in which some trees exist and are empty."""
    read = tree_summaries(tx, roots)
    used = {
        provider: {read.class_names[class_id]: -int(used) for class_id, *_capacity, used in amounts if used}
        for provider, amounts in read.stocks.items()
    }
    changes = {provider: amounts for provider, amounts in overlay.changes.items() if provider not in read.members}
    return replace(
        overlay,
        changes={**changes, **{provider: amounts for provider, amounts in used.items() if amounts}},
        avoided=overlay.avoided - {*roots},
        gone=overlay.gone - {*roots},
    )
