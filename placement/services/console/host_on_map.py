"""One host of the map: its tree, and what prevents one more copy of a request there."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from placement.candidates.explain.explain import explain
from placement.domain.candidate_request import CandidateRequest
from placement.domain.drawn_tree import Drawing, drawing
from placement.domain.place_lock import PlaceLock
from placement.domain.search_plan import plan_for
from placement.errors import Invalid, NotFound
from placement.services.console.tree import DEEPEST, DrawnProvider, drawn_providers
from placement.services.explain import Explained, condition_masks
from placement.store.connection.unit_of_work import Transaction, reads_anywhere
from placement.store.console import cloud_map, tree
from placement.store.search.provider_names import named_providers

MAX_DRAWN = 40


@dataclass(frozen=True, slots=True)
class HostOnMap:
    """A host.

    Args:
        root: the host itself.
        providers: as many providers of its tree as are drawn, each after its parent, with their depth.
        size: the number of providers in the tree.
        explained: why no further copy of the request fits here, or that one does; None without a request.
    """

    root: DrawnProvider
    providers: Sequence[tuple[int, DrawnProvider]]
    size: int
    explained: Explained | None


@reads_anywhere
def host_on_map(
    tx: Transaction,
    beginning: str,
    request: CandidateRequest | None,
    *,
    levels: Mapping[str, str],
    locks: Sequence[PlaceLock] = (),
) -> HostOnMap:
    """Return the host whose uuid has this beginning.

    Args:
        tx: the transaction.
        beginning: the beginning of the uuid.
        request: the request to explain.
        levels: name of a level -> trait of its places, outermost first.
        locks: the locks of places: nothing fits into a place that somebody holds exclusively.

    Raises:
        NotFound: there is none.
        Invalid: there are several; or a resource class or trait does not exist.
    """
    host = _only([*cloud_map.hosts_with(tx, beginning)])
    parents = tree.parents_by_name(tx, host)
    drawn = drawing(parents, host, most=MAX_DRAWN, deepest=DEEPEST)
    nodes = drawn_providers(tx, drawn.drawn, levels)
    return HostOnMap(
        root=nodes[host],
        providers=[(depth, nodes[id_]) for depth, id_ in _in_order(drawn, host, 0)],
        size=len(parents),
        explained=_explained(tx, request, host, locks) if request else None,
    )


def _only(found: Sequence[int]) -> int:
    if not found:
        raise NotFound("There is no host whose uuid begins so.")
    if len(found) > 1:
        raise Invalid("There are several hosts whose uuid begins so.")
    return found[0]


def _in_order(drawn: Drawing, id_: int, depth: int) -> Iterator[tuple[int, int]]:
    yield depth, id_
    for child in drawn.children[id_]:
        yield from _in_order(drawn, child, depth + 1)


def _explained(tx: Transaction, request: CandidateRequest, root: int, locks: Sequence[PlaceLock]) -> Explained:
    plan = plan_for(request)
    explanation = explain(plan, condition_masks(tx, plan, locks=locks, only_root=root))
    return Explained(explanation, named_providers(tx, explanation.providers()))
