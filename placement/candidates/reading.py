"""Decides in which order trees are read: by id, or by the highest score each can have; in portions that grow.

Nothing beats a candidate in one place of each level, so bounds on places are computed only once a composed candidate
touches more. Thanks to them most trees are ruled out unread.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

import numpy as np

from placement.allocators.compactness import Counts
from placement.candidates.bounds import BoundedScores
from placement.candidates.frontier import LAST, ROOT, Key, Keyed, Portion
from placement.candidates.key_order import KeyColumns, KeyOrder, KeyQueue
from placement.candidates.ranking import Shared, TreeScores, amounts_of, least_amounts_of
from placement.candidates.tree_reader import TreeReader
from placement.cloud.columns import CloudColumns
from placement.cloud.derived import KeptInState, reading_all_pays
from placement.cloud.providers import Ints
from placement.domain.search_limits import LIMITS, SearchLimits
from placement.domain.search_plan import Plan
from placement.domain.tree import Tree

BYTES_OF_KEY = 40
"""What a tree's key takes in an order."""

CachedOrder = Callable[[TreeScores, Sequence[str]], KeyOrder | None]
"""Looks up what ``TreeScores.keys`` returns for the sums of all trees, in ascending order; None if that is not cached.
Takes the scores, and further classes as ``TreeReader.sums`` does.
"""


LeastByRoot = Mapping[int, Counts]
"""The least number of places that each tree that can serve touches, level by level."""

LeastPlaces = Callable[[], LeastByRoot | None]
"""Returns that for all trees; None if it is unknown."""


def shared_by(reader: TreeReader, *, is_simple: bool = True) -> Shared | None:
    """Return what sharing providers may serve of a request, for its scores; None if no provider shares.

    Args:
        reader: reads the trees.
        is_simple: whether each slot takes one provider, and no tree that may serve is left out.
    """
    if not reader.shares:
        return None
    plan, demands = reader.plan, reader.shared_demands
    taken = {slot.demand for slot in plan.slots if slot.resources}
    alone = taken <= demands and not (is_simple and _comes_with_its_tree(plan))
    return Shared(least_amounts_of(plan, demands), alone)


def _comes_with_its_tree(plan: Plan) -> bool:
    """Tell whether a sharing provider that serves alone is also found in its own tree, whose sums bound its score."""
    request = plan.request
    asks_of_root = request.root_required or request.root_forbidden or plan.forbidden_root_aggregates
    return len(plan.slots) == 1 and bool(plan.slots[0].resources) and not asks_of_root


class SumsAsRead:
    """The sums of the trees read so far, where candidates have scores rather than trees.

    Args:
        reader: reads the sums, with one statement for each portion of trees.
        classes: the classes of the scores.
    """

    def __init__(self, reader: TreeReader, classes: Sequence[str]) -> None:
        self._reader = reader
        self._classes = classes
        self._rows: dict[int, Sequence[int]] = {}
        self._asked: set[int] = set()

    def of(self, root: int) -> Sequence[int]:
        """Return the row of a tree that was read: its root, then its capacity, then its usage of each class."""
        return self._rows.get(root) or (root, *[0] * 2 * len(self._classes))

    def together(self, roots: Collection[int], root_of: Mapping[int, int]) -> Sequence[int]:
        """Return one row for several trees added up, under the lowest of their roots.

        The sums of all trees in ``root_of`` are read at once, so that later calls find theirs.
        """
        self._ask({*root_of.values()})
        rows = [self.of(root) for root in sorted(roots)]
        if len(rows) == 1:
            return rows[0]
        return (min(roots, default=0), *map(sum, zip(self.of(0)[1:], *[row[1:] for row in rows], strict=True)))

    def read(self, portions: Iterable[Portion]) -> Iterator[Portion]:
        """Yield each portion of trees once the sums of its trees are known."""
        for portion in portions:
            self._ask({tree.root for _key, tree in portion.trees})
            yield portion

    def _ask(self, roots: AbstractSet[int]) -> None:
        unknown = roots - self._asked
        if unknown and self._classes:
            self._rows.update([(row[0], row) for row in self._reader.sums(self._classes, (), unknown)])
        self._asked |= unknown


def by_id(reader: TreeReader, wanted: int | None) -> Iterator[Tree]:
    """Yield all trees as they are read, for requests without an order."""
    for trees, _last in reader.chunks(wanted):
        yield from trees


def promising_first(
    reader: TreeReader,
    scores: TreeScores,
    wanted: int | None,
    *,
    cached_order: CachedOrder | None = None,
    limits: SearchLimits = LIMITS,
) -> Iterator[Portion]:
    """Yield all trees, those with the highest possible scores first.

    Args:
        reader: reads the trees.
        scores: bounds what trees can score.
        wanted: how many candidates are wanted; None for all.
        cached_order: looks up the keys of all trees for scores that were asked for before.
        limits: how large the portions are in which trees are read.
    """
    if reader.is_possible and reader.only_root is not None and _is_left_out(reader.only_root, scores, reader):
        return iter(())
    if not scores.tell_trees_apart or not reader.is_possible or reader.only_root is not None:
        return by_root(scores, reader, wanted)
    found_by = classes_to_find(reader.plan, scores)
    order = cached_order(scores, found_by) if cached_order else None
    keys = KeyQueue(KeyOrder.from_keys(_keys(reader, scores, found_by)) if order is None else order)
    return ByScore(scores, keys, reader, complete=not reader.shares, limits=limits).portions(wanted)


def kept_order(
    scores: TreeScores, found_by: Sequence[str], ids: Mapping[str, int], *, columns: CloudColumns, kept: KeptInState
) -> KeyOrder | None:
    """Return the keys of all trees in order, working out only those of trees that have changed; None without a use.

    Args:
        scores: what trees can score.
        found_by: further classes. Only trees that have any of these or of those of the scores have a key.
        ids: the ids of classes by name; those that nobody has may be missing.
        columns: what trees have.
        kept: keeps the order.
    """
    if scores.signature is None or not scores.classes:
        return None
    ids = {name: ids[name] for name in {*scores.classes, *found_by} if name in ids}
    # A class may take the name of another, which the journal does not record.
    name = "order", scores.signature, tuple(found_by), frozenset(ids.items())
    last = kept.find(name)
    if last is not None and not last.changed:
        return _order_in(last.value)
    if last is None or reading_all_pays(len(last.changed), len(columns.providers.roots)):
        order = KeyOrder(_key_columns(columns, scores, ids))
    else:
        changed = columns.providers.tree_indices(sorted(last.changed))
        keys = _key_columns(columns, scores, ids, changed[changed >= 0])
        before = _order_in(last.value).keys
        order = KeyOrder(before.with_changes(last.changed.difference(keys.roots.tolist()), keys))
    # The signature of scores names their profile by its identity, so the profile is kept as well.
    kept.keep(name, (scores, order), size=BYTES_OF_KEY * len(order))
    return order


def _order_in(value: tuple[TreeScores, KeyOrder]) -> KeyOrder:
    return value[1]


def _key_columns(
    columns: CloudColumns, scores: TreeScores, ids: Mapping[str, int], indices: Ints | None = None
) -> KeyColumns:
    """Return the keys of some trees, or of all, that have any class named."""
    at = np.arange(len(columns.providers.roots)) if indices is None else indices
    has_any = np.zeros(len(at), dtype=bool)
    for class_id in ids.values():
        has_any |= columns.sums(class_id).has[at]
    at = at[has_any]
    sums = [columns.sums(ids[name]) if name in ids else None for name in scores.classes]
    nothing = np.zeros(len(at), dtype=np.int64)
    capacity = [nothing if of_class is None else of_class.capacity[at] for of_class in sums]
    used = [nothing if of_class is None else of_class.used[at] for of_class in sums]
    return scores.key_columns(columns.providers.roots[at], capacity, used)


def _is_left_out(root: int, scores: TreeScores, reader: TreeReader) -> bool:
    """Tell whether the profile filters out a tree, which is not compared with any other."""
    if not (scores.filters and scores.classes):
        return False
    nothing = root, *[0] * 2 * len(scores.classes)
    ((fails, *_rest),) = scores.keys([next(iter(reader.sums(scores.classes, (), [root])), nothing)])
    return fails


def classes_to_find(plan: Plan, scores: TreeScores) -> list[str]:
    """Return the classes to find trees by besides those of their scores: ``found_by`` of ``TreeReader.sums``.

    Without sharing, a tree that can serve has some of every requested class, so any one of these finds them all.
    """
    asked = amounts_of(plan)
    return [] if asked.keys() & {*scores.classes} else sorted(asked)[:1]


def _keys(reader: TreeReader, scores: TreeScores, found_by: Sequence[str]) -> list[Key]:
    with_any = scores.trees_with(amounts_of(reader.plan).keys())
    return scores.keys(reader.sums(scores.classes, found_by) if with_any is None else with_any)


def by_root(scores: TreeScores, reader: TreeReader, wanted: int | None) -> Iterator[Portion]:
    """Yield all trees by root, where only compactness and the root tell them apart."""
    for trees, last in reader.chunks(wanted):
        *keys, rest = scores.keys_of_nothing([*[tree.root for tree in trees], last + 1])
        yield Portion([*zip(keys, trees, strict=True)], rest)


class ByScore:
    """Reads trees in the order of the highest scores they can have.

    Args:
        scores: bounds what trees can score.
        keys: the keys of trees from before composing.
        reader: reads the trees.
        complete: whether every tree that may serve has a key. Otherwise, trees without any of the scored classes may
            turn up.
        left_out: the roots of trees to skip; they have no key.
        limits: how large the portions are in which trees are read.
    """

    def __init__(
        self,
        scores: TreeScores,
        keys: KeyQueue,
        reader: TreeReader,
        *,
        complete: bool,
        left_out: AbstractSet[int] = frozenset(),
        limits: SearchLimits = LIMITS,
    ) -> None:
        self._scores = scores
        self._reader = reader
        self._limits = limits
        self._keys = keys
        self._left_out = {*left_out, *(keys.without_failing() if scores.filters else ())}
        self._others = [] if complete else [scores.least_key_of_nothing]
        self._full = 0
        """How many trees were passed by because they have too little left."""

    def portions(self, wanted: int | None) -> Iterator[Portion]:
        """Yield the trees, those with the highest possible scores first.

        Args:
            wanted: how many candidates are wanted; None reads all trees at once.
        """
        if wanted is not None:
            yield from self._listed(max(self._limits.first_trees, wanted))
        if len(self._keys) or self._others:
            yield Portion(self._all_left(), LAST)

    def _listed(self, size: int) -> Iterator[Portion]:
        """Yield the best trees by root, in growing portions, while that is cheaper than reading all the rest.

        Stop early once a tree without a key may come before all the others.
        """
        keys = self._keys
        while len(keys) and 2 * size < len(keys) + self._full:
            if self._others and self._others[0] < keys.first:
                return
            best = {key[ROOT]: key for key in keys.taken(size)}
            self._left_out |= best.keys()
            trees = [(best[tree.root], tree) for tree in self._reader.trees_of([*best])]
            yield Portion(trees, min([keys.first if len(keys) else LAST, *self._others]))
            # A portion that was in vain because of full trees says nothing about how many of the others to read.
            if not self._pass_full_by():
                size *= self._limits.growth

    def _pass_full_by(self) -> bool:
        """Drop the keys of trees that are known to have too little left; tell whether there were any."""
        roomy = self._reader.with_room(self._keys.roots())
        if roomy is None or len(roomy) == len(self._keys):
            return False
        full = self._keys.only(frozenset(roomy))
        self._left_out |= full
        self._full += len(full)
        return True

    def _all_left(self) -> list[Keyed]:
        by_root = {key[ROOT]: key for key in self._keys}
        trees = [tree for tree in self._reader.all_trees() if tree.root not in self._left_out]
        without = [tree.root for tree in trees if tree.root not in by_root]
        by_root |= {key[ROOT]: key for key in self._scores.keys_of_nothing(without)}
        return [(by_root[tree.root], tree) for tree in trees]


def bounded_as_needed(
    reader: TreeReader,
    scores: BoundedScores,
    wanted: int | None,
    *,
    least: LeastPlaces,
    cached_order: CachedOrder | None = None,
    limits: SearchLimits = LIMITS,
) -> Iterator[Portion]:
    """Yield the same as ``promising_first``, with bounds from ``least`` as soon as a score falls short."""
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
    least_by_root = least()
    if least_by_root is None:
        yield from unbounded
    else:
        yield from bounded_first(
            reader, scores, wanted, least_by_root, seen=seen, cached_order=cached_order, limits=limits
        )


def bounded_first(
    reader: TreeReader,
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
        all_keys = scores.keys(reader.sums(scores.classes, found_by)) if order is None else scores.bounded([*order])
        keys = [key for key in all_keys if key[ROOT] in least]
    keys += scores.keys_of_nothing(sorted(least.keys() - {key[ROOT] for key in keys}))
    left = [key for key in keys if key[ROOT] not in seen]
    if not left:
        return
    # Results composed so far may precede everything that is left.
    yield Portion([], min(left))
    yield from ByScore(
        scores, KeyQueue(KeyOrder.from_keys(left)), reader, complete=True, left_out=seen, limits=limits
    ).portions(wanted)
