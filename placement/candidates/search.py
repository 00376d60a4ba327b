"""The search for candidates of a plan: a pipeline of lazy phases, each pulling from the one before what it needs.

* Narrow: the reader does it while reading. It is the cheapest phase and prunes most, so it comes first.
* Read: in portions, for callers that want ten candidates; most promising first, where sums tell.
* Compose: tree by tree, because trees are independent, except that equivalent ones are composed once.
* Rank: after composing, because the compactness of a tree's best candidate is not known before. A tree comes out as
  soon as no unread or uncomposed tree can beat it.
* Limit: last, so that it cuts off the worst candidates; the others are lazy, so it cuts off their work, too.

Where providers share with trees, candidates rather than trees have scores: by what each takes of the tree itself, its
*own part*. Say a host has two pools to take storage from, its own disk and a shared one. A candidate with 4 VCPU and
100 GB has the own part (4, 100) if the disk serves, and (4, 0) if the pool does. A candidate served by sharing
providers alone takes from their trees, not from the tree it was found in. Such candidates are ranked apart, grouped by
the trees they take from, however many trees they are found in.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import reduce
from itertools import chain, islice, repeat
from operator import itemgetter, or_

from placement.allocators.ranking_profile import Counts
from placement.candidates.compose.compact import CompactFirst
from placement.candidates.compose.slots import RequestBudget, SlotComposer
from placement.candidates.ranking import FAILS, Key, OwnAmounts
from placement.candidates.tree_order import TreeOrder, best_first
from placement.candidates.tree_reader import TreeReader
from placement.domain.search_plan import LIMITS, Choice, Plan, SearchLimits
from placement.domain.tree import Tree

Candidate = tuple[int, Choice]
"""A way to serve a request: the root of the tree it was found in, and the provider of each slot of the plan."""

TreeWithChoices = tuple[Tree, Iterator[Choice]]


def candidates_in(plan: Plan, trees: Iterable[Tree], budget: RequestBudget) -> Iterator[Candidate]:
    """Yield the candidates of all trees, those of one before those of the next; trees are pulled as candidates are."""
    composer = SlotComposer(plan, budget)
    return _walked(((tree, composer.choices(tree)) for tree in trees), breadth_first=False)


def found_candidates(
    reader: TreeReader,
    order: TreeOrder | None,
    *,
    budget: RequestBudget,
    limit: int | None,
    breadth_first: bool,
    limits: SearchLimits = LIMITS,
) -> list[Candidate]:
    """Return as many candidates of a plan as are wanted, None for all, but no more than one answer may hold.

    Mark the budget as hit if that cap cuts off any. Without an order, trees come by id; with ``breadth_first``, each
    tree's first candidate comes before any tree's second.
    """
    room = max(1, limits.placements // max(1, len(reader.plan.slots)))
    trees = _by_id(reader, budget, limit) if order is None else _best_first(order, budget, room)
    candidates = _walked(trees, breadth_first=breadth_first)
    shown = list(islice(candidates, room if limit is None else min(limit, room)))
    if len(shown) == room and limit != room and next(candidates, None) is not None:
        budget.was_hit = True
    return shown


def _by_id(reader: TreeReader, budget: RequestBudget, limit: int | None) -> Iterator[TreeWithChoices]:
    composer, complete = SlotComposer(reader.plan, budget), reader.complete
    size = max(1, len(complete) if limit is None else limit)
    for start in range(0, len(complete), size):
        for tree in reader.read(complete[start : start + size]):
            yield tree, composer.choices(tree)


def _best_first(order: TreeOrder, budget: RequestBudget, room: int) -> Iterator[TreeWithChoices]:
    """Compose and rank trees for an answer that has room for so many candidates."""
    if order.reader.shares:
        return map(itemgetter(2, 3), best_first(order.portions(), _PooledRanking(order, budget, room).ranked))
    composer = CompactFirst(order.reader.plan, budget, is_exhaustive=order.limit is None)

    def ranked(expected: Key, tree: Tree) -> Iterator[tuple[Key, Tree, Iterator[Choice]]]:
        """Compose a tree, and deduct from its score what its best candidate lacks in compactness."""
        order.scores.prefer_devices(tree)
        if composed := composer.composed_in(tree):
            yield order.final(expected, composed.counts), tree, composed.choices

    return map(itemgetter(1, 2), best_first(order.portions(), ranked))


def _walked(compositions: Iterable[TreeWithChoices], *, breadth_first: bool) -> Iterator[Candidate]:
    """Yield the candidates of trees composed lazily, once each: several trees may have those of sharing ones alone."""
    listed = set[Choice]()
    of_pools: dict[tuple[tuple[int, ...], ...], Iterator[Choice]] = {}

    def new_in(tree: Tree, choices: Iterator[Choice]) -> Iterator[Choice]:
        if not tree.sharing:
            return choices
        new = _not_listed(choices, tree.sharing, listed)
        # Thousands of hosts may have the same pools and nothing of their own. They share one iterator: each resumes
        # where the last one stopped, rather than composing again what the others have given.
        return new if tree.gives_of_its_own else of_pools.setdefault(tuple(map(tuple, tree.options)), new)

    candidates = (zip(repeat(tree.root), new_in(tree, choices)) for tree, choices in compositions)
    return _round_robin(candidates) if breadth_first else chain.from_iterable(candidates)


def _not_listed(choices: Iterator[Choice], sharing: AbstractSet[int], listed: set[Choice]) -> Iterator[Choice]:
    for choice in choices:
        if all([provider in sharing for provider in choice]):
            if choice in listed:
                continue
            listed.add(choice)
        yield choice


def _round_robin(compositions: Iterable[Iterator[Candidate]]) -> Iterator[Candidate]:
    while compositions:
        unfinished = []
        for composition in compositions:
            candidate = next(composition, None)
            if candidate is not None:
                yield candidate
                unfinished.append(composition)
        compositions = unfinished


MAX_SORTED = 4_000
"""How many candidates of one tree are sorted; others follow as found. If all are wanted, the answer's room counts."""

RankedPart = tuple[Key, tuple[int, ...], Tree, Iterator[Choice]]
"""The key of the best candidate, a tie-break for equal keys, the tree, and its candidates."""

_RankedChoice = tuple[tuple[tuple[bool, float], Counts], Choice]
"""A candidate after its sort key: whether it breaks a proportion, its negated score, and the places it touches."""


class _PooledRanking:
    """Composes in trees that others share with, and ranks the results."""

    def __init__(self, order: TreeOrder, budget: RequestBudget, room: int) -> None:
        plan, scores, is_exhaustive = order.reader.plan, order.scores, order.limit is None
        self._scores = scores
        self._order = order
        self._budget = budget
        self._left_to_sort = room if is_exhaustive else None
        self._compact_first = CompactFirst(plan, budget, is_exhaustive=is_exhaustive)
        self._composer = SlotComposer(plan, budget)
        self._taking = [
            (index, slot.demand, tuple([dict(slot.resources).get(name, 0) for name in scores.weighed]))
            for index, slot in enumerate(plan.slots)
            if slot.resources
        ]
        """The slots that take anything: their index, their demand, and what they take of the classes that count."""
        self._nothing: OwnAmounts = (0,) * len(scores.weighed)
        self._demands = {demand for _index, demand, _amounts in self._taking}
        self._of_other_trees: set[object] = set()

    def ranked(self, _expected: Key, tree: Tree) -> Iterator[RankedPart]:
        """Yield the candidates of a tree in groups, each with the key of its best."""
        self._scores.prefer_devices(tree)
        if not any([tree.sharing.isdisjoint(tree.options[demand]) for demand in self._demands]):
            yield from self._of_pools(self._only(tree, tree.sharing))
            own_part = None
        else:
            own_part = self._only_own_part(tree)
        if own_part is not None:
            if composed := self._compact_first.composed_in(tree):
                # All candidates give the same of the tree, so that only compactness orders them.
                key = self._scores.key_of(self._order.row_of(tree.root), own_part, composed.counts)
                if not (key[FAILS] and self._scores.filters):
                    yield key, (), tree, composed.choices
        elif any([not tree.sharing >= {*tree.options[demand]} for demand in self._demands]):
            yield from self._of_tree(tree)

    def _of_pools(self, alone: Tree) -> Iterator[RankedPart]:
        """Yield what sharing providers serve alone: whatever takes from the same trees scores the same."""
        composed = None if self._was_found(alone, None, alone.options) else self._compact_first.composed_in(alone)
        if composed is None:
            return
        groups: dict[AbstractSet[int], list[Choice]] = defaultdict(list)
        for choice in self._to_sort(composed.choices):
            groups[frozenset([_root_of(choice[index], alone) for index, *_amounts in self._taking])].append(choice)
        if next(composed.choices, None) is not None:
            self._budget.was_hit = True
        for roots, choices in groups.items():
            row = self._order.row_of_all(roots)
            # Ranks among trees as if it had been found in its own.
            root = row[0] if self._scores.tell_trees_apart else alone.root
            key = (*self._scores.weight_of_pools(row), root)
            if not (key[FAILS] and self._scores.filters) and not self._was_found(alone, roots, choices):
                inside = {provider for row in alone.options for provider in row if _root_of(provider, alone) in roots}
                yield key, (*sorted(roots), alone.root), self._only(alone, inside), iter(choices)

    def _was_found(self, alone: Tree, roots: AbstractSet[int] | None, rows: Sequence[Sequence[int]]) -> bool:
        """Note what sharing providers serve alone; tell whether another tree that gives nothing gave the same."""
        if alone.gives_of_its_own:
            return False
        name = roots, tuple(map(tuple, rows))
        was_found = name in self._of_other_trees
        self._of_other_trees.add(name)
        return was_found

    def _of_tree(self, tree: Tree) -> Iterator[RankedPart]:
        """Yield the candidates that take anything of the tree itself, the best score first, then by compactness."""
        choices = self._composer.choices(tree)
        ranked = sorted(self._with_ranks(tree, self._to_sort(choices)), key=itemgetter(0))
        further = self._with_ranks(tree, map(self._out_of_order, choices))
        if ranked or (ranked := [*islice(further, 1)]):
            (rank, _counts), _choice = ranked[0]
            yield (*rank, tree.root), (), tree, (choice for _key, choice in chain(ranked, further))

    def _to_sort(self, choices: Iterator[Choice]) -> list[Choice]:
        """Return the choices of a tree that are to be sorted, at least the first."""
        if self._left_to_sort is None:
            return [*islice(choices, MAX_SORTED)]
        taken = [*islice(choices, max(1, self._left_to_sort))]
        self._left_to_sort -= len(taken)
        return taken

    def _with_ranks(self, tree: Tree, choices: Iterable[Choice]) -> Iterator[_RankedChoice]:
        """Yield choices with their sort keys, without those that take nothing of the tree or are filtered out."""
        row, masks = self._order.row_of(tree.root), tree.places.masks
        for choice in choices:
            own_part = self._own_part(choice, tree)
            if own_part is not None:
                fails, negated = self._scores.weight(row, own_part)
                touched = [masks.get(choice[index], 0) for index, *_amounts in self._taking]
                counts = tree.places.counts(reduce(or_, touched, 0)) if masks else ()
                if not (fails and self._scores.filters):
                    yield ((fails, negated + self._scores.lost(counts)), counts), choice

    def _out_of_order(self, choice: Choice) -> Choice:
        self._budget.was_hit = True
        return choice

    def _own_part(self, choice: Choice, tree: Tree) -> OwnAmounts | None:
        """Return the own part of a choice; None if sharing providers alone serve."""
        if all([choice[index] in tree.sharing for index, *_amounts in self._taking]):
            return None
        parts = [amounts for index, _demand, amounts in self._taking if _is_own(choice[index], tree)]
        return tuple(map(sum, zip(self._nothing, *parts, strict=True)))

    def _only_own_part(self, tree: Tree) -> OwnAmounts | None:
        """Return the own part of all candidates of a tree; None if they differ, by who gives the same."""
        parts = []
        for _index, demand, amounts in self._taking:
            is_own = {_is_own(provider, tree) for provider in tree.options[demand]}
            if any(amounts) and len(is_own) > 1:
                return None
            if True in is_own:
                parts.append(amounts)
        return tuple(map(sum, zip(self._nothing, *parts, strict=True)))

    def _only(self, tree: Tree, providers: AbstractSet[int]) -> Tree:
        """Return a tree in which only some providers serve demands that take anything."""
        rows = [*tree.options]
        for demand in self._demands:
            rows[demand] = [provider for provider in rows[demand] if provider in providers]
        return replace(tree, options=rows)


def _root_of(provider: int, tree: Tree) -> int:
    return tree.root_of.get(provider, tree.root)


def _is_own(provider: int, tree: Tree) -> bool:
    """Tell whether what a provider gives is the tree's own: also if it shares that with others."""
    return provider not in tree.sharing or _root_of(provider, tree) == tree.root
