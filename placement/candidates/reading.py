"""Which trees are read when: by id, or by what they can score if the best come first; in portions that grow."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Protocol

from placement.candidates.frontier import LAST, Key, Keyed, Portion
from placement.candidates.key_order import KeyOrder
from placement.candidates.key_queues import KeyQueue, SortedKeys, UnsortedKeys
from placement.candidates.layout import laid_out
from placement.candidates.ranking import Shared, TreeScores, amounts_of, least_amounts_of
from placement.domain.search_limits import LIMITS, SearchLimits
from placement.domain.search_plan import Plan
from placement.domain.tree import Tree, TreesRead

CachedOrder = Callable[[TreeScores, Sequence[str]], KeyOrder | None]
"""Returns what ``TreeScores.keys`` makes of all sums, in ascending order; None where that is not known. It is given the
scores, and further classes as in ``Reader.sums``."""


class Reader(Protocol):
    """The border between the search and the store: what each phase has to be told of the trees that can serve a plan.

    Anything that has these methods can stand here; a search needs no database. Trees come by root id.

    * *Narrow*: only trees come in which every demand of the plan has a provider, so ``Tree.options`` has no empty list.
      What depends on several providers at once (room for sums, ties, isolation) is not judged yet. ``is_possible`` and
      ``only_root`` are what can be told from names alone.
    * *Read*: a tree comes with all that composing asks of it: options in ascending order, the room of contended
      classes, which trait sets providers meet, parents where providers are tied, and who shares with it from where.
      ``TreesRead.places`` has what places and their order are worked out from, for all trees of a portion at once.
    * *Compose*: nothing more.
    * *Rank*: ``sums``, the totals of whole trees, which tell what a tree can score before it is read; ``shares`` and
      ``shared_demands``, for a tree may serve without any such sum where others share with it.
    * *Limit*: portions are asked for as they are wanted, and nothing is read ahead.
    """

    @property
    def plan(self) -> Plan:
        """What is asked for."""

    @property
    def is_possible(self) -> bool:
        """Whether any tree may serve at all."""

    @property
    def only_root(self) -> int | None:
        """The root of the one tree that may serve, if the request names it."""

    @property
    def shares(self) -> bool:
        """Whether a tree may serve with what others share."""

    @property
    def shared_demands(self) -> AbstractSet[int]:
        """The demands of the plan that others may serve. What is taken for any other one is taken of a tree itself."""

    @property
    def most_listed(self) -> int:
        """How many trees can be asked for by their roots."""

    def sums(
        self, classes: Sequence[str], found_by: Sequence[str], roots: Collection[int] | None = None
    ) -> Collection[Sequence[int]]:
        """Return for each tree its root, then its capacities, then its use of some classes.

        Args:
            classes: the classes; of one that does not exist nobody has any.
            found_by: further classes. Only trees that have any class of either are there.
            roots: the trees that are asked for; None for all.
        """

    def chunks(self, wanted: int | None) -> Iterator[tuple[TreesRead, int]]:
        """Yield all trees in portions, each with the highest root id that it may reach.

        Args:
            wanted: how many candidates are wanted, which the size of the first portion depends on; None reads all.
        """

    def trees_of(self, roots: Sequence[int]) -> TreesRead:
        """Return the trees with these roots."""

    def all_trees(self) -> TreesRead:
        """Return all trees."""


def shared_by(reader: Reader, *, is_simple: bool = True) -> Shared | None:
    """Return what of a request others may give, for its scores; None where nobody shares.

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
    """Tell whether what a sharing provider serves alone is found in its own tree, too, which says how good it is."""
    request = plan.request
    asks_of_root = request.root_required or request.root_forbidden or plan.forbidden_root_aggregates
    return len(plan.slots) == 1 and bool(plan.slots[0].resources) and not asks_of_root


class SumsAsRead:
    """The sums of trees that have been read, for scores that are those of candidates.

    Args:
        reader: reads them: one statement for each portion of trees.
        classes: the classes of the scores.
    """

    def __init__(self, reader: Reader, classes: Sequence[str]) -> None:
        self._reader = reader
        self._classes = classes
        self._rows: dict[int, Sequence[int]] = {}
        self._asked: set[int] = set()

    def of(self, root: int) -> Sequence[int]:
        """Return the root of a tree that was read, then its capacity, then its use of each of the classes."""
        return self._rows.get(root) or (root, *[0] * 2 * len(self._classes))

    def together(self, roots: Collection[int], home: Mapping[int, int]) -> Sequence[int]:
        """Return the same of trees taken as one, with the least root; ``home`` has all that may be asked for."""
        self._ask({*home.values()})
        rows = [self.of(root) for root in sorted(roots)]
        if len(rows) == 1:
            return rows[0]
        return (min(roots, default=0), *map(sum, zip(self.of(0)[1:], *[row[1:] for row in rows], strict=True)))

    def read(self, portions: Iterable[Portion]) -> Iterator[Portion]:
        """Yield portions of trees once the sums of theirs are known."""
        for portion in portions:
            self._ask({tree.root for _key, tree in portion.trees})
            yield portion

    def _ask(self, roots: AbstractSet[int]) -> None:
        unknown = roots - self._asked
        if unknown and self._classes:
            listed = unknown if len(unknown) <= self._reader.most_listed else None
            self._rows.update([(row[0], row) for row in self._reader.sums(self._classes, (), listed)])
        self._asked |= unknown


def by_id(reader: Reader, wanted: int | None) -> Iterator[Tree]:
    """Yield all trees as they come, where nothing is said about an order."""
    for read, _last in reader.chunks(wanted):
        yield from read.trees


def promising_first(
    reader: Reader,
    scores: TreeScores,
    wanted: int | None,
    *,
    cached_order: CachedOrder | None = None,
    limits: SearchLimits = LIMITS,
) -> Iterator[Portion]:
    """Yield all trees, those first that can score highest.

    Args:
        reader: reads the trees.
        scores: what they can score.
        wanted: how many candidates are wanted; None for all.
        cached_order: knows the keys of all trees for scores that were asked for before.
        limits: in which portions trees are read.
    """
    if not scores.tell_trees_apart or not reader.is_possible or reader.only_root is not None:
        return by_root(scores, reader, wanted)
    found_by = classes_to_find(reader.plan, scores)
    order = cached_order(scores, found_by) if cached_order else None
    keys = UnsortedKeys(_keys(reader, scores, found_by)) if order is None else SortedKeys(order)
    return ByScore(scores, keys, reader, complete=not reader.shares, limits=limits).portions(wanted)


def classes_to_find(plan: Plan, scores: TreeScores) -> list[str]:
    """Return what trees have to be found by besides the classes of their scores; as ``found_by`` of ``Reader.sums``.

    Where nothing is shared, a tree that can serve has some of every class that is asked for.
    """
    asked = amounts_of(plan)
    return [] if asked.keys() & {*scores.classes} else sorted(asked)[:1]


def _keys(reader: Reader, scores: TreeScores, found_by: Sequence[str]) -> list[Key]:
    known = scores.trees_with(amounts_of(reader.plan).keys())
    return scores.keys(reader.sums(scores.classes, found_by) if known is None else known)


def by_root(scores: TreeScores, reader: Reader, wanted: int | None) -> Iterator[Portion]:
    """Yield all trees, where nothing but compactness and the root tells them apart."""
    for read, last in reader.chunks(wanted):
        trees = laid_out(read)
        *keys, rest = scores.keys_of_nothing([*[tree.root for tree in trees], last + 1])
        yield Portion([*zip(keys, trees, strict=True)], rest)


class ByScore:
    """Reads trees by what they can score.

    Args:
        scores: what trees can score.
        keys: the keys of trees before they are composed.
        reader: reads the trees.
        complete: whether every tree that may serve has a key; otherwise some may come that have none of the classes
            that scores look at.
        left_out: the roots of trees that are not wanted, and have no key.
        limits: in which portions trees are read.
    """

    def __init__(
        self,
        scores: TreeScores,
        keys: KeyQueue,
        reader: Reader,
        *,
        complete: bool,
        left_out: AbstractSet[int] = frozenset(),
        limits: SearchLimits = LIMITS,
    ) -> None:
        self._scores = scores
        self._reader = reader
        self._limits = limits
        self._keys = keys
        self._left_out = left_out | (keys.without_failing() if scores.filters else set())
        self._others = [] if complete else [scores.least_key_of_nothing]

    def portions(self, wanted: int | None) -> Iterator[Portion]:
        """Yield the trees, those first that can score highest.

        Args:
            wanted: how many candidates are wanted; None reads all trees at once.
        """
        if wanted is not None:
            yield from self._listed(max(self._limits.first_trees, wanted))
        if len(self._keys) or self._others:
            yield Portion(self._all_left(), LAST)

    def _listed(self, size: int) -> Iterator[Portion]:
        """Yield the best trees by their roots, as long as that is cheaper than reading all that are left."""
        keys = self._keys
        while 2 * size < len(keys) and size <= self._reader.most_listed:
            if self._others and self._others[0] < keys.first:
                return
            best = {key[2]: key for key in keys.taken(size)}
            found = [(best[tree.root], tree) for tree in laid_out(self._reader.trees_of([*best]))]
            self._left_out = self._left_out | best.keys()
            yield Portion(found, min([keys.first, *self._others]))
            size *= self._limits.growth

    def _all_left(self) -> list[Keyed]:
        known = {key[2]: key for key in self._keys}
        trees = [tree for tree in laid_out(self._reader.all_trees()) if tree.root not in self._left_out]
        without = [tree.root for tree in trees if tree.root not in known]
        known |= {key[2]: key for key in self._scores.keys_of_nothing(without)}
        return [(known[tree.root], tree) for tree in trees]
