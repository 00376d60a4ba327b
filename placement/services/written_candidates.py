"""Answers a repeated request as ``allocation_candidates`` would, from the cached texts of trees.

The request's own snapshot shows which trees are stale; only these are read, composed and written again. This works
where an answer is the sum of its trees: the best come first, no other tree serves any of the request, and no tree has
more than a few candidates.
"""

import sys
from bisect import bisect_left
from collections.abc import Collection, Hashable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import count, islice
from operator import itemgetter
from typing import NamedTuple

from placement.candidates.frontier import LAST, Key
from placement.candidates.key_order import KeyOrder, KeyQueue
from placement.candidates.ranking import Ranking, TreeScores, amounts_of
from placement.candidates.reading import classes_to_find
from placement.domain.candidate_request import CandidateRequest
from placement.domain.search_plan import NamedIds, Plan, plan_for
from placement.services.allocation_candidates import Answer, SearchOptions, answer_for, asked_for
from placement.services.cloud_cache import cloud_in, ids_in
from placement.services.fragmentation import FragmentationJudge
from placement.services.resource_classes import classes_in_families
from placement.services.text_cache import TextsInSnapshot, Trees, WrittenTree
from placement.services.written_trees import TreeWriter, Write
from placement.store.connection.unit_of_work import Transaction, reads_anywhere

MAX_WITHOUT_LIMIT = 4000
"""Among more trees, a request without a limit is left to the search, which streams its answer."""


@dataclass(frozen=True, slots=True)
class Question:
    """A request that may have been asked before.

    Args:
        name: identifies it and the form of its answer.
        request: what is asked for.
        options: how candidates are generated.
        ranking: what is best.
        write: writes texts of trees.
    """

    name: Hashable
    request: CandidateRequest
    options: SearchOptions
    ranking: Ranking
    write: Write

    @property
    def key(self) -> Hashable:
        """All but the database that an answer depends on."""
        return self.name, self.options, id(self.ranking.profile), self.ranking.levels

    @property
    def may_be_sum(self) -> bool:
        """Whether the request allows an answer that is the sum of its trees."""
        return self.wanted != 0 and not any(group.in_tree for group in self.request.groups)

    @property
    def wanted(self) -> int | None:
        """How many candidates are wanted; None for all."""
        return min([most for most in (self.request.limit, self.options.most) if most is not None], default=None)


class WrittenAnswer(NamedTuple):
    """The texts of an answer: of each candidate, and of the providers of each of their trees."""

    candidates: list[str]
    providers: list[str]


@reads_anywhere
def candidates_or_texts(
    tx: Transaction, question: Question, *, judge: FragmentationJudge | None = None
) -> Answer | WrittenAnswer:
    """Answer a question in one snapshot: with the texts of trees if it was asked before, else as a search does.

    Raises:
        Invalid: a resource class or trait does not exist.
        OutOfSteps: the search ran out of steps before it found anything.
    """
    request, options, ranking = question.request, question.options, question.ranking
    plan = plan_for(request)
    ids = ids_in(tx, plan, ranking.levels, locks=options.locks)
    written = written_answer(tx, question, plan=plan, ids=ids) if judge is None else None
    if written is not None and written.candidates:
        return written
    return answer_for(tx, request, options, ranking, plan=plan, ids=ids, judge=judge)


def written_answer(tx: Transaction, question: Question, *, plan: Plan, ids: NamedIds) -> WrittenAnswer | None:
    """Return the answer in a snapshot as texts; None if it has to be searched for."""
    cloud = cloud_in(tx)
    if cloud.moment is None or not question.may_be_sum:
        return None
    options, ranking = question.options, question.ranking
    texts = TextsInSnapshot(tx, cloud.kept, request=question.key, ids=ids)
    if not texts.may_be_used or cloud.reason_for_nothing(asked_for(question.request, options, ranking)) is not None:
        return None
    asked, families = amounts_of(plan), classes_in_families(tx, ranking)
    scores = TreeScores(asked, replace(ranking, seed=None), families)
    order = cloud.order(scores, classes_to_find(plan, scores))
    writer = TreeWriter(tx, plan, ids, limits=options.limits, write=question.write)
    if order is None or writer.shares or (question.wanted is None and len(order) > MAX_WITHOUT_LIMIT):
        texts.refuse()
        return None
    keys = _queue(order, scores, shuffling=None if ranking.is_certain else TreeScores(asked, ranking, families))
    search = _SearchOfWritten(keys, scores, texts.trees, writer)
    answer = search.answer(question)
    if answer is None:
        texts.refuse()
    elif writer.written:
        texts.keep(writer.written, writer.names, used=search.trees, has_limit=question.wanted is not None)
    return answer


def _queue(order: KeyOrder, scores: TreeScores, *, shuffling: TreeScores | None) -> KeyQueue:
    """Return the keys of the trees to look at, in order."""
    keys = KeyQueue(order if shuffling is None else KeyOrder.from_keys(shuffling.shuffled(order)))
    if scores.filters:
        keys.without_failing()
    return keys


class _SearchOfWritten:
    """The search of ``candidates.search``, over written trees.

    Args:
        keys: the keys of all trees.
        scores: what trees can score.
        cached: the cached trees.
        writer: writes the others.
    """

    def __init__(self, keys: KeyQueue, scores: TreeScores, cached: Trees, writer: TreeWriter) -> None:
        self._keys = keys
        self._number = len(keys)
        self._scores = scores
        self._cached = cached
        self._writer = writer
        self._can_all_be_written = True
        self.trees: dict[int, WrittenTree | None] = {}
        """The trees seen."""

    def answer(self, question: Question) -> WrittenAnswer | None:
        """Return the best candidates, as many as are wanted; None if a search must find them."""
        limits = question.options.limits
        wanted = sys.maxsize if question.wanted is None else question.wanted
        trees = self._in_order(max(limits.first_trees, wanted), limits.growth)
        answer = (_breadth_first if question.options.breadth_first else _depth_first)(trees, wanted)
        served = len(self.trees) - [*self.trees.values()].count(None)
        is_bounded = self._writer.is_bounded(candidates=len(answer.candidates), trees=served)
        return answer if self._can_all_be_written and is_bounded else None

    def _in_order(self, size: int, growth: int) -> Iterator[WrittenTree]:
        """Yield the trees, best first; look at ``size`` at first, then at ``growth`` times as many each time."""
        keys, lost = self._keys, self._scores.lost
        found: list[tuple[Key, WrittenTree]] = []
        while len(keys) and self._can_all_be_written:
            some = keys.taken(size)
            trees = zip(some, self._written([root for _fails, _negated, root in some]), strict=True)
            # Roots are unique, so comparing keys decides.
            found += [
                ((fails, negated + lost(tree.counts), root), tree)
                for (fails, negated, root), tree in trees
                if tree is not None
            ]
            found.sort()
            rest = keys.first if len(keys) else LAST
            ready = bisect_left(found, rest, key=itemgetter(0))
            yield from [tree for _key, tree in found[:ready]]
            del found[:ready]
            size *= growth

    def _written(self, roots: Collection[int]) -> list[WrittenTree | None]:
        missing = [root for root in roots if root not in self._cached]
        if missing:
            self._can_all_be_written = self._writer.has_written(missing, of=self._number)
        known, new = self._cached.get, self._writer.written
        trees = [new[root] if root in new else known(root) for root in roots]
        self.trees.update(zip(roots, trees, strict=True))
        return trees


def _breadth_first(trees: Iterable[WrittenTree], wanted: int) -> WrittenAnswer:
    """Return the first candidate of each tree before the second of any."""
    taken = list(islice(trees, wanted))
    texts: list[str] = []
    for number in count():
        of_round = [tree.candidates[number] for tree in taken if len(tree.candidates) > number]
        texts += of_round[: wanted - len(texts)]
        if len(texts) == wanted or not of_round:
            break
    return WrittenAnswer(texts, [tree.providers for tree in taken])


def _depth_first(trees: Iterable[WrittenTree], wanted: int) -> WrittenAnswer:
    """Return all candidates of a tree before the next."""
    texts: list[str] = []
    providers: list[str] = []
    for tree in trees:
        texts += tree.candidates[: wanted - len(texts)]
        providers.append(tree.providers)
        if len(texts) == wanted:
            break
    return WrittenAnswer(texts, providers)
