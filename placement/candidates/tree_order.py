"""The order in which trees are read and composed: by the highest score that each can have, in portions that grow.

Keys of all trees are columns, sorted only as far as trees are read. Nothing beats a candidate in one place of each
level, so bounds on places are computed only once a composed candidate touches more: most trees are ruled out unread.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from heapq import heappop, heappush
from itertools import chain
from math import inf
from typing import Any, NamedTuple, TypeVar

import numpy as np

from placement.allocators.ranking_profile import Counts
from placement.candidates.ranking import ROOT, Key, KeyColumns, TreeScores
from placement.candidates.serving import Serving
from placement.candidates.tree_reader import TreeReader
from placement.cloud.derived import KeptInState, reading_all_pays
from placement.cloud.providers import Flags, Ints
from placement.domain.search_plan import LIMITS, SearchLimits
from placement.domain.tree import Tree

LAST: Key = (True, inf, 0)
"""A key that comes after every tree's."""


class Portion(NamedTuple):
    """Some trees with their keys from before composing; ``bound`` is a lower bound on those of all trees to come."""

    trees: list[tuple[Key, Tree]]
    bound: Key


Ranked = TypeVar("Ranked", bound=tuple[Any, ...])
"""A composed result, led by its own key, which is no less than its tree's."""


def best_first(portions: Iterable[Portion], compose: Callable[[Key, Tree], Iterable[Ranked]]) -> Iterator[Ranked]:
    """Yield the results composed in trees, best first, reading and composing no more trees than that takes.

    A tree's key, known before it is composed, is a lower bound on the keys of everything in it. A tree is composed only
    once no unread tree can precede it, and a result is yielded only once no unread or uncomposed tree can (a threshold
    algorithm). Portions come most promising first, and no two of all results have equal keys.
    """
    waiting: list[tuple[Key, Tree]] = []
    composed: list[Ranked] = []
    for trees, bound in chain(portions, (Portion([], LAST),)):
        # Roots are unique, so comparing keys never reaches the trees.
        waiting = sorted(waiting + trees, reverse=True)
        while waiting and waiting[-1][0] < bound:
            expected, tree = waiting.pop()
            while composed and composed[0][0] < expected:
                yield heappop(composed)
            for result in compose(expected, tree):
                heappush(composed, result)
        if bound == LAST and not waiting:
            break
        while composed and composed[0][0] < bound:
            yield heappop(composed)
    yield from sorted(composed)  # Faster than popping one at a time.


BLOCK = 512
"""How many keys to sort at first. Each later block is as large as all before it."""


class KeyOrder:
    """Keys in ascending order. What it says never changes, so threads share it."""

    __slots__ = ("_failing", "_state", "among", "first_failing", "keys")

    def __init__(self, keys: KeyColumns, among: Ints) -> None:
        self.keys = keys
        self.among = among
        fails = keys.fails[among]
        self._failing = among[fails]
        self.first_failing = len(among) - len(self._failing)
        """The place of the first key that breaks a proportion: these come last."""
        self._state = among[:0], among[~fails]
        """The indices of the best keys in order, and of others that are not sorted yet, ascending."""

    def __len__(self) -> int:
        return len(self.among)

    def keys_at(self, at: Ints) -> list[Key]:
        """Return some keys by index."""
        roots, fails, negated = (column[at].tolist() for column in self.keys)
        return [*zip(fails, negated, roots, strict=True)]

    def indices(self, start: int, end: int) -> Ints:
        """Return the indices of the keys from one place in the order up to another, as a list's slice does."""
        in_order, unsorted = self._state
        while len(in_order) < min(end, len(self.among)):
            if len(unsorted):
                block, unsorted = self._split(unsorted, max(BLOCK, len(in_order)))
            else:
                block = self._failing
            # The indices ascend, and a stable sort leaves those with equal scores so.
            block = block[np.argsort(self.keys.negated[block], kind="stable")]
            in_order = np.concatenate((in_order, block))
            # One assignment: threads share it.
            self._state = in_order, unsorted
        return in_order[start:end]

    def _split(self, unsorted: Ints, size: int) -> tuple[Ints, Ints]:
        """Return the best keys, at least ``size`` and all as good as any of these, and the others."""
        if size >= len(unsorted):
            return unsorted, unsorted[:0]
        negated = self.keys.negated[unsorted]
        is_best = negated <= np.partition(negated, size - 1)[size - 1]
        return unsorted[is_best], unsorted[~is_best]


class KeyQueue:
    """The keys of an order that one request has not taken yet, best first."""

    def __init__(self, order: KeyOrder, *, filters: bool) -> None:
        self.order = order
        self._at, self._end = 0, order.first_failing if filters else len(order)

    def __len__(self) -> int:
        return self._end - self._at

    def __iter__(self) -> Iterator[Key]:
        return iter(self.order.keys_at(self.order.indices(self._at, self._end)))

    @property
    def first(self) -> Key:
        """The best key left; ``LAST`` if there is none."""
        return self.order.keys_at(self.order.indices(self._at, self._at + 1))[0] if len(self) else LAST

    def taken(self, count: int) -> Ints:
        """Take away the best ``count`` keys, or all that are left, and return their indices in order."""
        start, self._at = self._at, min(self._end, self._at + count)
        return self.order.indices(start, self._at)


BYTES_OF_KEY = 40
"""What a tree's key takes in an order."""

NOTHING_KEPT = KeptInState()


def tree_keys(reader: TreeReader, scores: TreeScores, trees: Ints | None = None) -> KeyColumns:
    """Return the keys of some trees, given by index, or of all."""
    roots = reader.roots if trees is None else reader.roots[trees]
    return scores.keys(roots, *reader.sum_columns(scores.classes, trees))


def kept_order(reader: TreeReader, scores: TreeScores, kept: KeptInState) -> KeyOrder | None:
    """Return the keys of all trees, those of what is asked for in order; only changes are worked out. None: no use."""
    if scores.signature is None or not scores.classes or not scores.requested:
        return None
    ids = reader.class_ids({*scores.classes, *scores.requested})
    # A class may take the name of another, which the journal does not record.
    name = "order", scores.signature, frozenset(ids.items())
    last, keys = kept.find(name), None
    if last is not None:
        order: KeyOrder = last.value[1]
        if not last.changed:
            return order
        changed = reader.tree_indices(last.changed)
        if not reading_all_pays(len(changed), len(reader.roots)) and np.array_equal(order.keys.roots, reader.roots):
            keys = order.keys.replaced(changed, tree_keys(reader, scores, changed))
    if keys is None:
        keys = tree_keys(reader, scores)
    first = ids.get(min(scores.requested))
    order = KeyOrder(keys, np.flatnonzero(first is not None and reader.serving.columns.sums(first).has))
    # The signature of scores names their profile by its identity, so the profile is kept as well.
    kept.keep(name, (scores, order), size=BYTES_OF_KEY * len(keys.roots))
    return order


class LeastPlaces(NamedTuple):
    """By the index of a tree: for each level the least number of places touched; whether it has enough providers."""

    counts: Sequence[Ints]
    enough: Flags


def least_places(
    serving: Serving, demands: Sequence[tuple[int, int]], *, levels: Sequence[int | None]
) -> LeastPlaces | None:
    """Return, for each tree, a lower bound on the places touched at each level, given the ids of their traits.

    ``demands`` want so many different providers each. None if sharing ones are counted: a tree alone does not decide.
    """
    if any(serving.sharing.options[demand] for demand, _number in demands):
        return None
    providers = serving.columns.providers
    counts = [np.ones(len(providers.roots), dtype=np.int64) for _level in levels]
    enough: Flags = np.ones(len(providers.roots), dtype=bool)
    for demand, number in demands:
        at = serving.own_providers(serving.plan.demands[demand])
        enough &= np.bincount(providers.trees[at], minlength=len(enough)) >= number
        for level, trait_id in enumerate(levels):
            if trait_id is not None:
                nearest = providers.nearest(at, serving.sets.with_trait(trait_id))
                free = np.bincount(providers.trees[at[nearest < 0]], minlength=len(enough))
                sizes = np.bincount(nearest[nearest >= 0], minlength=len(providers.ids))
                fewest = fewest_places(np.flatnonzero(sizes), sizes, providers.trees, needed=number - free)
                counts[level] = np.maximum(counts[level], fewest)
    return LeastPlaces(counts, enough)


def fewest_places(places: Ints, sizes: Ints, trees: Ints, *, needed: Ints) -> Ints:
    """Return for each tree how many of its places, the largest first, it takes to have as many providers as needed.

    Given are the positions of places, and by position how many providers lie in each, and the trees.

    >>> trees = np.array([0, 0, 0, 1])
    >>> fewest_places(np.arange(4), np.array([2, 1, 3, 1]), trees, needed=np.array([4, 0])).tolist()
    [2, 0]
    """
    places = places[np.lexsort((-sizes[places], trees[places]))]
    tree_of, upto = trees[places], np.cumsum(sizes[places])
    before = upto - sizes[places]
    first = np.searchsorted(tree_of, tree_of)
    before = before - before[first] if len(places) else before
    return np.bincount(tree_of[before < needed[tree_of]], minlength=len(needed))


@dataclass(eq=False)
class TreeOrder:
    """The trees of a cloud for one request, by what they can score at most; ``limit`` candidates are wanted, or all.

    ``least`` returns bounds on the places touched in each tree, if there are any; None if places never tell.
    """

    reader: TreeReader
    scores: TreeScores
    _: KW_ONLY
    limit: int | None
    kept: KeptInState = NOTHING_KEPT
    least: Callable[[], LeastPlaces | None] | None = None
    limits: SearchLimits = LIMITS
    _falls_short: bool = field(default=False, init=False)
    """Whether anything composed so far has lost points for the places it touches."""
    _if_compact: dict[int, float] = field(default_factory=dict, init=False)
    """Root -> the negated score of a tree that was read, if its best candidate is as compact as can be."""

    def portions(self, *, is_bounded: bool = False) -> Iterator[Portion]:
        """Yield the trees that can serve, places bounded from the start or once a candidate falls short."""
        keys = self._keys
        queue = KeyQueue(KeyOrder(keys, self.reader.complete), filters=self.scores.filters)
        size = len(queue) if self.limit is None else max(self.limits.first_trees, self.limit)
        while len(queue):
            if self.least and (is_bounded or self._falls_short):
                least, self.least = self.least(), None
                if least is not None:
                    queue = self._bounded(keys, queue.taken(len(queue)), least)
                    # Results composed so far may precede everything that is left.
                    yield Portion([], queue.first)
                    continue
            taken = np.sort(queue.taken(size))
            bounds = {key[ROOT]: key for key in queue.order.keys_at(taken)}
            self._if_compact.update(zip(bounds, keys.negated[taken].tolist(), strict=True))
            yield Portion([(bounds[tree.root], tree) for tree in self.reader.read(taken)], queue.first)
            size *= self.limits.growth

    def only(self, root: int) -> Iterator[Portion]:
        """Yield one tree, unless the profile filters it out."""
        trees = self.reader.trees_of([root])
        keys = tree_keys(self.reader, self.scores, self.reader.tree_indices([tree.root for tree in trees]))
        queue = KeyQueue(KeyOrder(keys, np.arange(len(trees))), filters=self.scores.filters)
        yield Portion([*zip(queue, trees, strict=False)], LAST)

    def in_order(self, roots: Collection[int]) -> list[int]:
        """Return the roots by what their trees can score, without trees that the profile filters out."""
        order = KeyOrder(self._keys, self.reader.tree_indices(roots))
        return [root for _fails, _negated, root in KeyQueue(order, filters=self.scores.filters)]

    def final(self, key: Key, counts: Counts, *, is_as_read: bool = True) -> Key:
        """Return the key of a result that touches so many places, given its tree's, which knows none if it changed."""
        fails, negated, root = key
        self.note(counts)
        if is_as_read:
            negated = self._if_compact.get(root, negated)
        return fails, negated + self.scores.lost(counts), root

    def note(self, counts: Counts) -> None:
        """Note how many places a composed result touches."""
        self._falls_short = self._falls_short or self.scores.lost(counts) > 0

    @cached_property
    def _sums(self) -> Sequence[Ints]:
        """What each tree has of each class that counts, then what it uses."""
        capacity, used = self.reader.sum_columns(self.scores.classes)
        return *capacity, *used

    def row_of(self, root: int) -> Sequence[int]:
        """Return the sums of a tree as scores take them: after its root."""
        index = np.searchsorted(self.reader.roots, root)
        return (root, *[int(column[index]) for column in self._sums])

    def row_of_all(self, roots: Collection[int]) -> Sequence[int]:
        """Return one row for several trees added up, under the lowest of their roots."""
        rows = [self.row_of(root)[1:] for root in roots] or [[0] * len(self._sums)]
        return (min(roots, default=0), *map(sum, zip(*rows, strict=True)))

    @property
    def _keys(self) -> KeyColumns:
        """The keys of all trees, those of trees that an overlay changes worked out anew."""
        reader = self.reader
        order = kept_order(reader.as_it_is, self.scores, self.kept) if self.kept.is_known else None
        if order is None:
            return tree_keys(reader, self.scores)
        changed = reader.changed
        return order.keys.replaced(changed, tree_keys(reader, self.scores, changed)) if len(changed) else order.keys

    def _bounded(self, keys: KeyColumns, remaining: Ints, least: LeastPlaces) -> KeyQueue:
        """Return those of the keys left whose trees have enough providers, lowered by bounds on places."""
        remaining = np.sort(remaining[least.enough[remaining]])
        negated = keys.negated.copy()
        if least.counts and len(remaining):
            vectors, kind = np.unique(np.stack(least.counts, axis=1)[remaining], axis=0, return_inverse=True)
            lost = np.array([self.scores.lost(tuple(counts)) for counts in vectors.tolist()])
            negated[remaining] += lost[kind.ravel()]
        return KeyQueue(KeyOrder(keys._replace(negated=negated), remaining), filters=False)
