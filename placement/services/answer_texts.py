"""Answers a repeated request as ``allocation_candidates`` would, from the texts of trees that are kept.

The text of a tree depends only on the tree's own rows, on the ids of the names in the request, and on the names of
classes and traits in the text: after a change of such a name nothing is kept. The request's own snapshot shows which
trees have changed; only these are read, composed and written again. This works where an answer is the sum of its trees:
the best come first, no other tree serves any of the request, and no tree has more than a few candidates.
"""

import sys
from bisect import bisect_left
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count, islice
from math import prod
from operator import itemgetter
from typing import NamedTuple

from placement.allocators.ranking_profile import Counts
from placement.candidates.compose.compact import CompactFirst
from placement.candidates.compose.slots import RequestBudget
from placement.candidates.ranking import Key, TreeScores, amounts_of
from placement.candidates.tree_order import KeyOrder, KeyQueue, kept_order
from placement.candidates.tree_reader import TreeReader
from placement.domain.search_plan import NamedIds, Plan, plan_for
from placement.domain.tree import Tree
from placement.services.allocation_candidates import Answer, CandidateQuestion, answer_to
from placement.services.cloud_cache import cloud_in, ids_in
from placement.store.connection.database import Transaction, reads_anywhere
from placement.store.search.names import tree_summaries

MOST_WITHOUT_LIMIT = 8 << 20
"""How much one request without a limit, which looks at all trees, may take, in bytes."""

MAX_WITHOUT_LIMIT = 4000
"""Among more trees, a request without a limit is left to the search, which streams its answer."""

MAX_COMBINATIONS = 16
"""Trees with more combinations of providers are not written: a search finds only their first ones."""

BYTES_OF_TREE = 400
"""The memory of a tree without its text."""

SPARE = 16
"""How many times as many trees to keep as a request looks at: where chance decides, each looks at others."""


class TextsOfTree(NamedTuple):
    """The texts of a tree: each of its candidates in an answer, best first, and all its providers."""

    candidates: tuple[str, ...]
    providers: str


Write = Callable[[Answer], Mapping[int, TextsOfTree]]
"""Writes an answer by root of its trees."""


class WrittenTree(NamedTuple):
    """What a tree contributes to an answer, and how many places of each level its best candidate touches."""

    counts: Counts
    texts: TextsOfTree


Trees = Mapping[int, WrittenTree | None]
"""What trees contribute, by root; None for nothing."""


class WrittenForm(NamedTuple):
    """A form of answers to ranked requests: its name, and what writes an answer in it."""

    name: Hashable
    write: Write


class WrittenAnswer(NamedTuple):
    """The texts of an answer: of each candidate, and of the providers of each of their trees."""

    candidates: list[str]
    providers: list[str]


@reads_anywhere
def candidates_or_texts(tx: Transaction, question: CandidateQuestion, form: WrittenForm) -> Answer | WrittenAnswer:
    """Answer with the texts of trees if the same was asked before, else as a search does; raises as ``answer_to``."""
    plan, ranking = plan_for(question.request), question.ranking
    ids = ids_in(tx, plan, ranking.levels if ranking else (), locks=question.options.locks)
    is_kept = ranking is not None and question.judge is None
    written = written_answer(tx, question, form, plan=plan, ids=ids) if is_kept else None
    return written if written is not None and written.candidates else answer_to(tx, question, plan=plan, ids=ids)


def written_answer(
    tx: Transaction, question: CandidateQuestion, form: WrittenForm, *, plan: Plan, ids: NamedIds
) -> WrittenAnswer | None:
    """Return the answer to a ranked request in a snapshot as texts; None if it has to be searched for."""
    cloud, ranking, limit = cloud_in(tx), question.ranking, question.limit
    is_in_tree = any(group.in_tree for group in question.request.groups)
    if ranking is None or cloud.version is None or limit == 0 or is_in_tree:
        return None
    key = "texts", form.name, question.options, id(ranking.profile), ranking.levels
    before = _texts_before(tx, key, ids)
    if before is None or cloud.reason_for_nothing(question.key) is not None:
        return None
    amounts, node_classes = amounts_of(plan), cloud.node_classes(ranking.profile)
    scores = TreeScores(amounts, replace(ranking, seed=None), node_classes)
    reader = cloud.reader(plan, ids, with_places=any(ids.levels), adds_up=True)
    search = _SearchOfWritten(tx, question, form.write, reader, scores, before)
    order, answer = kept_order(reader, scores, cloud.kept), None
    if order is not None and not reader.shares and (limit or len(order) <= MAX_WITHOUT_LIMIT):
        if not ranking.is_certain:
            order = KeyOrder(TreeScores(amounts, ranking, node_classes).shuffled(order.keys), order.among)
        answer = search.answer(order)
    if answer is None:
        cloud.kept.keep(key, _REFUSED, size=0)
    elif search.new:
        texts = search.to_keep()
        is_too_large = limit is None and texts.size > MOST_WITHOUT_LIMIT
        cloud.kept.keep(key, _REFUSED if is_too_large else texts, size=0 if is_too_large else texts.size)
    return answer


@dataclass(frozen=True, slots=True)
class _KeptTexts:
    """What trees contribute to one request.

    ``ids`` is None before it has been asked for twice; ``is_refused``: no sum of its trees, or too large to keep.
    """

    ids: NamedIds | None = None
    trees: Trees = field(default_factory=dict)
    is_refused: bool = False

    @property
    def size(self) -> int:
        """The memory that the trees take, in bytes."""
        texts = [tree.texts for tree in self.trees.values() if tree is not None]
        lengths = sum([len(of_tree.providers) + sum(map(len, of_tree.candidates)) for of_tree in texts])
        return lengths + BYTES_OF_TREE * len(self.trees) + BYTES_OF_TREE // 4 * sum([len(t.candidates) for t in texts])


_REFUSED = _KeptTexts(is_refused=True)


def _texts_before(tx: Transaction, key: Hashable, ids: NamedIds) -> _KeptTexts | None:
    """Return the texts that are current in a snapshot; None if none are to be used, or on the first request."""
    kept_texts = cloud_in(tx).kept
    kept = kept_texts.find(key)
    if kept is None:
        kept_texts.keep(key, _KeptTexts(), size=0)
        return None
    before: _KeptTexts = kept.value
    if before.is_refused:
        return None
    if before.ids != ids:  # A custom name was deleted, and created again.
        return _KeptTexts(ids)
    return replace(before, trees={root: tree for root, tree in before.trees.items() if root not in kept.changed})


@dataclass
class _SearchOfWritten:
    """The search of ``candidates.search``, over written trees; writes those whose texts are not known."""

    tx: Transaction
    question: CandidateQuestion
    write: Write
    reader: TreeReader
    scores: TreeScores
    before: _KeptTexts
    new: dict[int, WrittenTree | None] = field(default_factory=dict)
    """The trees that were written, by root; None for nothing."""
    _used: dict[int, WrittenTree | None] = field(default_factory=dict)
    _can_all_be_written: bool = True
    _number: int = 0

    @property
    def _steps_of_tree(self) -> int:
        return MAX_COMBINATIONS * (len(self.reader.plan.slots) + 2)

    def to_keep(self) -> _KeptTexts:
        """Return the texts to keep for the next request."""
        trees = {**self.before.trees, **self.new}
        if len(trees) > SPARE * len(self._used):
            trees = {root: tree for root, tree in trees.items() if root in self._used}
        return _KeptTexts(self.before.ids, trees)

    def answer(self, order: KeyOrder) -> WrittenAnswer | None:
        """Return the best candidates, as many as are wanted; None if a search must find them."""
        keys, options = KeyQueue(order, filters=self.scores.filters), self.question.options
        limits, self._number = options.limits, len(keys)
        limit = sys.maxsize if self.question.limit is None else self.question.limit
        trees = self._in_order(keys, max(limits.first_trees, limit), limits.growth)
        answer = (_breadth_first if options.breadth_first else _depth_first)(trees, limit)
        # A search that finds as much stays within its limits only if these suffice.
        steps = self._steps_of_tree * (len(self._used) - [*self._used.values()].count(None))
        is_bounded = self._steps_of_tree <= limits.steps_per_tree and steps <= limits.steps_per_request
        is_bounded = is_bounded and len(answer.candidates) * len(self.reader.plan.slots) <= limits.placements
        return answer if self._can_all_be_written and is_bounded else None

    def _in_order(self, keys: KeyQueue, size: int, growth: int) -> Iterator[TextsOfTree]:
        """Yield the trees, best first; look at ``size`` at first, then at ``growth`` times as many each time."""
        lost, waiting = self.scores.lost, list[tuple[Key, TextsOfTree]]()
        while len(keys) and self._can_all_be_written:
            next_keys = keys.order.keys_at(keys.taken(size))
            trees = zip(next_keys, self._written([root for _fails, _negated, root in next_keys]), strict=True)
            # Roots are unique, so comparing keys decides.
            waiting += [
                ((fails, negated + lost(tree.counts), root), tree.texts)
                for (fails, negated, root), tree in trees
                if tree is not None
            ]
            waiting.sort()
            ready = bisect_left(waiting, keys.first, key=itemgetter(0))
            yield from [texts for _key, texts in waiting[:ready]]
            del waiting[:ready]
            size *= growth

    def _written(self, roots: Collection[int]) -> list[WrittenTree | None]:
        if missing := [root for root in roots if root not in self.before.trees]:
            self._can_all_be_written = self._has_written(missing)
        before, new = self.before.trees.get, self.new
        trees = [new[root] if root in new else before(root) for root in roots]
        self._used.update(zip(roots, trees, strict=True))
        return trees

    def _has_written(self, roots: Sequence[int]) -> bool:
        """Write the trees with these roots; return False if any cannot be written."""
        trees, plan = self._trees(roots), self.reader.plan
        if any(prod([len(tree.options[slot.demand]) for slot in plan.slots]) > MAX_COMBINATIONS for tree in trees):
            return False
        self.new.update(dict.fromkeys(roots))
        budget = RequestBudget(per_tree=self._steps_of_tree, per_request=self._steps_of_tree * len(roots))
        composer = CompactFirst(plan, budget, is_exhaustive=False)
        composed = [(tree.root, composer.composed_in(tree)) for tree in trees]
        served = {root: (of_tree.counts, [*of_tree.choices]) for root, of_tree in composed if of_tree}
        if served and not budget.was_hit:
            candidates = [(root, choice) for root, (_counts, choices) in served.items() for choice in choices]
            providers = tree_summaries(self.tx, served.keys())
            texts = self.write(Answer(plan, candidates, providers, frozenset(served)))
            self.new.update({root: WrittenTree(counts, texts[root]) for root, (counts, _choices) in served.items()})
        return not budget.was_hit

    def _trees(self, roots: Sequence[int]) -> Sequence[Tree]:
        if 2 * len(roots) <= self._number:
            return self.reader.trees_of(roots)
        requested = {*roots}
        return [tree for tree in self.reader.all_trees() if tree.root in requested]


def _breadth_first(trees: Iterable[TextsOfTree], limit: int) -> WrittenAnswer:
    """Return the first candidate of each tree before the second of any."""
    taken = list(islice(trees, limit))
    texts: list[str] = []
    for number in count():
        of_round = [tree.candidates[number] for tree in taken if len(tree.candidates) > number]
        texts += of_round[: limit - len(texts)]
        if len(texts) == limit or not of_round:
            break
    return WrittenAnswer(texts, [tree.providers for tree in taken])


def _depth_first(trees: Iterable[TextsOfTree], limit: int) -> WrittenAnswer:
    texts: list[str] = []
    providers: list[str] = []
    for tree in trees:
        texts += tree.candidates[: limit - len(texts)]
        providers.append(tree.providers)
        if len(texts) == limit:
            break
    return WrittenAnswer(texts, providers)
