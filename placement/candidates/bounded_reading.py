"""Decides in which order trees are read where so many providers are wanted that they may touch several places.

Nothing beats a candidate in one place of each level, so bounds on places are computed only once a composed candidate
touches more. Thanks to them most trees are ruled out unread.
"""

from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet

from placement.allocators.compactness import Counts
from placement.candidates.bounds import BoundedScores
from placement.candidates.frontier import LAST, ROOT, Portion
from placement.candidates.key_order import KeyOrder, KeyQueue
from placement.candidates.reading import ByScore, CachedOrder, Reader, classes_to_find, promising_first
from placement.domain.search_limits import LIMITS, SearchLimits

LeastByRoot = Mapping[int, Counts]
"""The least number of places that each tree that can serve touches, level by level."""

LeastPlaces = Callable[[], LeastByRoot | None]
"""Returns that for all trees; None if it is unknown."""


def bounded_as_needed(
    reader: Reader,
    scores: BoundedScores,
    wanted: int | None,
    *,
    least: LeastPlaces,
    cached_order: CachedOrder | None = None,
    limits: SearchLimits = LIMITS,
) -> Iterator[Portion]:
    """Yield all trees that may serve, those with the highest possible scores first.

    Args:
        reader: reads the trees.
        scores: bounds what trees can score.
        wanted: how many candidates are wanted; None for all.
        least: returns how few places trees can touch; called once a score falls short.
        cached_order: as in ``promising_first``.
        limits: how large the portions are in which trees are read.
    """
    unbounded = promising_first(reader, scores, wanted, cached_order=cached_order, limits=limits)
    if not reader.is_possible or reader.only_root is not None:
        yield from unbounded
        return
    seen: set[int] = set()
    while not scores.falls_short:
        portion = next(unbounded, None)
        if portion is None:
            return
        yield portion
        if portion.rest == LAST:
            return
        seen.update([tree.root for _key, tree in portion.trees])
    found = least()
    if found is None:
        yield from unbounded
    else:
        yield from bounded_first(reader, scores, wanted, found, seen=seen, cached_order=cached_order, limits=limits)


def bounded_first(
    reader: Reader,
    scores: BoundedScores,
    wanted: int | None,
    least: LeastByRoot,
    *,
    seen: AbstractSet[int] = frozenset(),
    cached_order: CachedOrder | None = None,
    limits: SearchLimits = LIMITS,
) -> Iterator[Portion]:
    """Yield the trees that have bounds, except those already seen, those with the highest possible scores first."""
    scores.bound(least)
    keys = []
    if scores.classes:
        found_by = classes_to_find(reader.plan, scores)
        order = cached_order(scores, found_by) if cached_order else None
        known = scores.keys(reader.sums(scores.classes, found_by)) if order is None else scores.bounded([*order])
        keys = [key for key in known if key[ROOT] in least]
    keys += scores.keys_of_nothing(sorted(least.keys() - {key[ROOT] for key in keys}))
    left = [key for key in keys if key[ROOT] not in seen]
    if not left:
        return
    # Results composed so far may precede everything that is left.
    yield Portion([], min(left))
    yield from ByScore(
        scores, KeyQueue(KeyOrder.from_keys(left)), reader, complete=True, left_out=seen, limits=limits
    ).portions(wanted)
