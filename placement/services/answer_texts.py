"""Answers a repeated request as ``allocation_candidates`` would, from the cached texts of trees."""

import sys
from bisect import bisect_left
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count, islice
from math import prod
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from placement.allocators.compactness import Counts
from placement.candidates.budget import RequestBudget
from placement.candidates.compose.compact import CompactFirst
from placement.candidates.key_order import KeyOrder, KeyQueue
from placement.candidates.ranking import Ranking, TreeScores, amounts_of
from placement.candidates.tree_order import kept_order
from placement.candidates.tree_reader import TreeReader
from placement.cloud.derived import KeptInState
from placement.domain.candidate_request import CandidateRequest
from placement.domain.search_plan import Choice, NamedIds, Plan, SearchLimits, plan_for
from placement.domain.tree import Tree
from placement.services.allocation_candidates import Answer, SearchOptions, answer_for, asked_for
from placement.services.cloud_cache import cloud_in, ids_in
from placement.services.fragmentation import FragmentationJudge
from placement.services.resource_classes import classes_in_families
from placement.store.connection.unit_of_work import Transaction, reads_anywhere
from placement.store.search.summaries import tree_summaries

MOST_WITHOUT_LIMIT = 8 << 20
"""How much one request without a limit, which looks at all trees, may take, in bytes."""

BYTES_OF_TREE = 400
"""The memory of a tree without its text."""

SPARE = 16
"""How many times as many trees to keep as a request looks at: where chance decides, each looks at others."""


class WrittenTree(NamedTuple):
    """What a tree contributes to an answer.

    Args:
        counts: how many places of each level its best candidate touches.
        candidates: the text of each candidate, best first.
        providers: the text of all its providers.
    """

    counts: Counts
    candidates: tuple[str, ...]
    providers: str


Trees = Mapping[int, WrittenTree | None]
"""What trees contribute, by root; None for nothing."""


class NamesInText(NamedTuple):
    """The names of classes and traits that occur in texts, by id."""

    classes: Mapping[int, str] = {}
    traits: Mapping[int, str] = {}

    def are_those_of(self, tx: Transaction) -> bool:
        """Tell whether the ids still have these names; standard ones always do, at no cost."""
        known = tx.names
        return (
            known.classes.names(tx.connection, self.classes) == self.classes
            and known.traits.names(tx.connection, self.traits) == self.traits
        )

    def together_with(self, other: "NamesInText") -> "NamesInText":
        """Return their union, for names of one snapshot."""
        return NamesInText({**self.classes, **other.classes}, {**self.traits, **other.traits})


NO_NAMES = NamesInText()


@dataclass(frozen=True, slots=True)
class KeptTexts:
    """What trees contribute to one request.

    Args:
        ids: the ids of the names in the request; None before it has been asked for twice.
        names: the names in the texts.
        trees: the trees.
        is_refused: whether its answer is not the sum of its trees, or too large to keep.
    """

    ids: NamedIds | None = None
    names: NamesInText = NO_NAMES
    trees: Trees = field(default_factory=dict)
    is_refused: bool = False

    @property
    def size(self) -> int:
        """The memory that the trees take, in bytes."""
        return sum([BYTES_OF_TREE if tree is None else _size(tree) for tree in self.trees.values()])


ASKED_ONCE, REFUSED = KeptTexts(), KeptTexts(is_refused=True)


def _size(tree: WrittenTree) -> int:
    return BYTES_OF_TREE + len(tree.providers) + sum([BYTES_OF_TREE // 4 + len(text) for text in tree.candidates])


class TextsInSnapshot:
    """The texts that are current in a snapshot, for one request.

    Args:
        tx: the snapshot.
        kept: what was derived from the cloud.
        request: identifies the request, and the form of its answer.
        ids: the ids of the names in it.
    """

    def __init__(self, tx: Transaction, kept: KeptInState, *, request: Hashable, ids: NamedIds) -> None:
        self._kept = kept
        self._request = "texts", request
        kept_texts = kept.find(self._request)
        before: KeptTexts | None = kept_texts and kept_texts.value
        if kept_texts is None or before is None:
            kept.keep(self._request, ASKED_ONCE, size=0)
        elif not before.is_refused and (before.ids != ids or not before.names.are_those_of(tx)):
            before = KeptTexts(ids)
        elif kept_texts.changed:
            left = {root: tree for root, tree in before.trees.items() if root not in kept_texts.changed}
            before = KeptTexts(ids, before.names, left, before.is_refused)
        self.may_be_used = before is not None and not before.is_refused
        """Whether the request has been asked for before, and its answer is the sum of its trees."""
        self._before = before or KeptTexts(ids)
        self.trees = self._before.trees
        """The trees whose texts are known."""

    def keep(self, new: Trees, names: NamesInText, *, used: Trees, has_limit: bool) -> None:
        """Keep what was written.

        Args:
            new: what further trees contribute.
            names: the names in their texts.
            used: all trees that the request has looked at.
            has_limit: whether the request has a limit.
        """
        trees = {**self.trees, **new}
        if len(trees) > SPARE * len(used):
            trees = {root: tree for root, tree in trees.items() if root in used}
        texts = KeptTexts(self._before.ids, self._before.names.together_with(names), trees)
        if has_limit or texts.size <= MOST_WITHOUT_LIMIT:
            self._kept.keep(self._request, texts, size=texts.size)
        else:
            self.refuse()

    def refuse(self) -> None:
        """Write no texts for this request: its answer is not the sum of its trees."""
        self._kept.keep(self._request, REFUSED, size=0)


MAX_COMBINATIONS = 16
"""Trees with more combinations of providers are not written: a search finds only their first ones."""


class TextsOfTree(NamedTuple):
    """The texts of a tree: each of its candidates in an answer, in their order, and all its providers."""

    candidates: tuple[str, ...]
    providers: str


Write = Callable[[Answer], Mapping[int, TextsOfTree]]
"""Writes an answer by root of its trees."""


class TreeWriter:
    """Writes trees that no other serves.

    Args:
        tx: the snapshot.
        plan: what is asked for.
        ids: the ids of the names in it.
        limits: those of a search.
        write: writes an answer.
    """

    def __init__(self, tx: Transaction, plan: Plan, ids: NamedIds, *, limits: SearchLimits, write: Write) -> None:
        self._tx = tx
        self._plan = plan
        self._ids = ids
        self._limits = limits
        self._write = write
        self._steps = MAX_COMBINATIONS * (len(plan.slots) + 2)
        self.written: dict[int, WrittenTree | None] = {}
        """The trees by root; None for nothing."""
        self.names = NamesInText()
        """The names of classes and traits in them."""

    @property
    def shares(self) -> bool:
        """Whether other trees may serve any of the request."""
        return self.reader.shares

    def is_bounded(self, *, candidates: int, trees: int) -> bool:
        """Tell whether a search that finds this many candidates in this many such trees stays within its limits."""
        limits, slots = self._limits, len(self._plan.slots)
        steps_suffice = self._steps <= limits.steps_per_tree and trees * self._steps <= limits.steps_per_request
        return steps_suffice and candidates * slots <= limits.placements

    def has_written(self, roots: Collection[int], *, of: int) -> bool:
        """Write the trees with these roots, out of ``of`` in all; return False if any cannot be written."""
        trees = self._trees(roots, of)
        if any(self._combinations(tree) > MAX_COMBINATIONS for tree in trees):
            return False
        self.written.update(dict.fromkeys(roots))
        budget = RequestBudget(per_tree=self._steps, per_request=self._steps * len(roots))
        composed = CompactFirst(self._plan, budget, all_wanted=False).composed(trees)
        found = {tree.root: (one.counts, [*one.ways]) for tree, one in zip(trees, composed, strict=True) if one}
        if found and not budget.was_hit:
            self._written(found)
        return not budget.was_hit

    def _trees(self, roots: Collection[int], of: int) -> Sequence[Tree]:
        if 2 * len(roots) <= of:
            return self.reader.trees_of(roots)
        wanted = {*roots}
        return [tree for tree in self.reader.all_trees() if tree.root in wanted]

    @cached_property
    def reader(self) -> TreeReader:
        """Reads the trees."""
        with_places = any(self._ids.levels)
        return cloud_in(self._tx).reader(self._plan, self._ids, with_places=with_places, adds_up=True)

    def _combinations(self, tree: Tree) -> int:
        return prod([len(tree.options[slot.demand]) for slot in self._plan.slots])

    def _written(self, found: Mapping[int, tuple[Counts, list[Choice]]]) -> None:
        candidates = [(root, choice) for root, (_counts, choices) in found.items() for choice in choices]
        providers = tree_summaries(self._tx, found.keys())
        self.names = self.names.together_with(NamesInText(providers.class_names, providers.trait_names))
        texts = self._write(Answer(self._plan, candidates, providers, frozenset(found)))
        self.written.update({root: WrittenTree(counts, *texts[root]) for root, (counts, _choices) in found.items()})


if TYPE_CHECKING:
    from placement.candidates.frontier import Key

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
    writer = TreeWriter(tx, plan, ids, limits=options.limits, write=question.write)
    order = kept_order(writer.reader, scores, cloud.kept)
    if order is None or writer.shares or (question.wanted is None and len(order) > MAX_WITHOUT_LIMIT):
        texts.refuse()
        return None
    if not ranking.is_certain:
        order = KeyOrder(TreeScores(asked, ranking, families).shuffled(order.keys), order.among)
    search = _SearchOfWritten(KeyQueue(order, filters=scores.filters), scores, texts.trees, writer)
    answer = search.answer(question)
    if answer is None:
        texts.refuse()
    elif writer.written:
        texts.keep(writer.written, writer.names, used=search.trees, has_limit=question.wanted is not None)
    return answer


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
            taken = keys.order.keys_at(keys.taken(size))
            trees = zip(taken, self._written([root for _fails, _negated, root in taken]), strict=True)
            # Roots are unique, so comparing keys decides.
            found += [
                ((fails, negated + lost(tree.counts), root), tree)
                for (fails, negated, root), tree in trees
                if tree is not None
            ]
            found.sort()
            ready = bisect_left(found, keys.first, key=itemgetter(0))
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
