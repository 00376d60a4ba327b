"""The fewest places in which each tree of a cloud can serve a request; costs far less than composing would."""

from collections.abc import Collection, Sequence
from functools import partial

from placement.allocators.compactness import Counts
from placement.candidates.bounds import Locator, SizesByDemand, fewest_places, place_sizes
from placement.candidates.serving import Serving
from placement.cloud.columns import Ints
from placement.domain.places import Layout, Position
from placement.services.cloud_cache import CloudCache
from placement.store.connection.unit_of_work import Transaction

CountedDemands = Sequence[tuple[int, int]]
"""(demand, number of different providers), for demands that want more than one provider."""


def least_places(
    tx: Transaction,
    serving: Serving,
    wanted: CountedDemands,
    *,
    levels: Sequence[int | None],
    cache: CloudCache | None,
) -> dict[int, Counts] | None:
    """Return, for each tree with enough providers, a lower bound on the places touched at each level.

    None if other trees share such providers, because a tree alone does not decide then.

    Args:
        tx: the transaction.
        serving: finds who can serve.
        wanted: the counted demands.
        levels: the trait ids of the levels, outermost first, None for one that does not exist.
        cache: caches how providers are distributed over places; None for no cache.
    """
    demands, numbers = [demand for demand, _number in wanted], [number for _demand, number in wanted]
    if any(serving.sharing.options[demand] for demand in demands):
        return None
    read = partial(_sizes, serving, demands=demands, levels=levels)
    sizes = None
    if cache is not None and not serving.spared:
        sizes = cache.facts(tx, (serving.signature, tuple(demands), tuple(levels)), read)
    sizes = read(None) if sizes is None else sizes
    least = {of_tree: _least(of_tree, numbers) for of_tree in {*sizes.values()}}  # Hosts have few distinct sizes.
    return {root: counts for root, of_tree in sizes.items() if (counts := least[of_tree]) is not None}


def _sizes(
    serving: Serving, roots: Collection[int] | None, *, demands: Sequence[int], levels: Sequence[int | None]
) -> dict[int, SizesByDemand]:
    """Return how each tree's providers for some demands are distributed over places, if each demand has any."""
    providers, at = serving.columns.providers, None
    if roots is not None:
        at = providers.positions_of_trees(roots)
    anchors = serving.anchors(levels, at)
    own = [serving.own_providers(serving.plan.demands[demand], at) for demand in demands]
    standing = [_standing(serving, of_demand, anchors.level_bits.keys()) for of_demand in own]
    among = {locator for of_demand in standing for _root, locator in of_demand if locator is not None}
    above = providers.with_ancestors(providers.positions(sorted(among | anchors.level_bits.keys())))
    layout = Layout(providers.parents_of(above), *anchors, levels=len(levels))
    positions = layout.positions_of(among, layout.inside(among))
    known = dict[Locator, Position]([(None, (None,) * len(levels)), *positions.items()])
    sizes = [place_sizes(of_demand, known, levels=len(levels)) for of_demand in standing]
    return {root: tuple([of_demand[root] for of_demand in sizes]) for root in set(sizes[0]).intersection(*sizes[1:])}


def _standing(serving: Serving, at: Ints, anchors: Collection[int]) -> list[tuple[int, Locator]]:
    """Return the root of each provider, and whose position it has: its own if it anchors a place, else its parent's."""
    providers = serving.columns.providers
    roots = providers.roots[providers.trees[at]].tolist()
    parents = providers.parents_of(at)
    ids = providers.ids[at].tolist()
    return [(root, id_ if id_ in anchors else parents[id_]) for root, id_ in zip(roots, ids, strict=True)]


def _least(sizes: SizesByDemand, numbers: Sequence[int]) -> Counts | None:
    counts = [fewest_places(of_demand, number) for of_demand, number in zip(sizes, numbers, strict=True)]
    enough = [of_demand for of_demand in counts if of_demand is not None]
    return tuple(map(max, zip(*enough, strict=True))) if len(enough) == len(counts) else None
