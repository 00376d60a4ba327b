"""A cloud as a client supposes it to be: what of it is gone, given back, or there besides."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from placement.candidates.headroom.what_if import MoreTrees
from placement.domain.overlay import AS_IT_IS, Overlay
from placement.errors import InvalidAt
from placement.services.planner.overlays import released
from placement.store.connection.unit_of_work import Transaction
from placement.store.search.whole_cloud import roots_by_aggregate, roots_of_providers


@dataclass(frozen=True, slots=True)
class Changes:
    """A cloud as it would be: nothing of this is written.

    Args:
        without: trees that are gone, by any of their providers, or by an aggregate that one of them is in.
        more: further trees, empty: the provider whose tree they are like, and how many.
        released: consumers that have given back all that they hold.
    """

    without: Sequence[str] = ()
    more: Sequence[tuple[str, int]] = ()
    released: Sequence[str] = ()


AS_THEY_ARE = Changes()


def overlay_of(tx: Transaction, changes: Changes, overlay: Overlay = AS_IT_IS) -> Overlay:
    """Return an overlay with changes, but for further trees. A consumer that holds nothing gives nothing back.

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
            overlay = replace(overlay, avoided=overlay.avoided.union(gone))
    return overlay


def more_trees(tx: Transaction, changes: Changes) -> list[MoreTrees]:
    """Return the further trees.

    Raises:
        InvalidAt: there is no such provider.
    """
    roots = roots_of_providers(tx, [uuid for uuid, _count in changes.more]) if changes.more else {}
    for number, (uuid, _count) in enumerate(changes.more):
        if uuid not in roots:
            raise InvalidAt(("with", number, "like"), f"There is no provider {uuid}.")
    return [MoreTrees(roots[uuid], count) for uuid, count in changes.more]
