"""The scores of candidates and their parts, each from 0 to 100: of one on its tree, or of many requests at once.

A request is scored on one node: the tree it takes from. What providers of other trees share with it is neither part of
the node nor charged to it, even if it is requested. What sharing providers serve alone is taken from their own trees,
which together are the node.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from placement.allocators.ranking_profile import (
    MAX_COMPACTNESS,
    Counts,
    OwnPart,
    RankingProfile,
    ScoredNode,
    compactness,
)
from placement.candidates.fragmentation import DeviceJudge
from placement.candidates.ranking import MAX_SCORE, ColumnScores
from placement.cloud.columns import CloudColumns, TreeSums
from placement.cloud.providers import Flags, Ints
from placement.domain.quantities import ResourceAmounts, summed


class Score(NamedTuple):
    """How good a candidate is, each part from 0 to 100; None for one that the profile leaves out.

    The total is their weighted mean. ``raw_fit`` and ``raw_sra`` are as Volcano's plugin states them, up to 100 times
    the weight. Compactness is how few places of each level are ``touched``, outermost first; fragmentation how useful
    the devices left are for expected work. Candidates that break the proportion come last, or are left out.
    """

    total: float
    fit: float | None
    sra: float | None
    compactness: float | None
    fragmentation: float | None
    touched: Counts
    keeps_proportion: bool | None
    raw_fit: float | None
    raw_sra: float | None

    def without_room(self) -> "Score":
        """Return the score of the same candidate where it has no room: each part is 0."""
        return Score._make([0.0 if isinstance(part, float) else part for part in self])


class CandidateScorer:
    """Scores candidates that take the same amounts, on any tree, which gives its ``own`` part; see ``NodeScorer``."""

    def __init__(
        self,
        profile: RankingProfile,
        requested: ResourceAmounts,
        own: ResourceAmounts,
        node_classes: Iterable[str] = (),
    ) -> None:
        self._scorer = profile.scorer(requested, frozenset(node_classes), OwnPart.exactly(own))
        self.classes = self._scorer.classes
        """The classes whose capacity and usage a tree is judged by, in this order."""
        self._per_point = MAX_SCORE / float(profile.maximum) if profile.maximum else 0.0
        self._per_compactness = self._per_point * float(profile.compactness)
        self._per_tidiness = self._per_point * float(profile.fragmentation.weight) if profile.fragmentation else 0.0
        self._profile = profile

    def score(
        self, capacities: Sequence[int], used: Sequence[int], touched: Counts, fragmentation: float | None = None
    ) -> Score:
        """Return the score of a candidate, given what its tree has and uses without it of each of the classes.

        ``fragmentation`` is what it leaves of devices, from 0 to 100; None if unknown.
        """
        scorer, amounts = self._scorer, (capacities, used)
        points = (scorer.score(*amounts), scorer.fit(*amounts), scorer.sra(*amounts))
        compact, tidy = _compactness(touched), fragmentation or 0.0
        total, fit, sra, compactness, *raw_parts = self._parts(points, scorer.keeps_proportion(*amounts), compact, tidy)
        tidiness = fragmentation if self._profile.fragmentation else None
        return Score(total, fit, sra, compactness, tidiness, touched, *raw_parts)

    def scores(
        self,
        capacities: Sequence[Ints],
        used: Sequence[Ints],
        *,
        touched: Sequence[Counts],
        fragmentation: Sequence[float | None],
    ) -> list[Score]:
        """Return the scores of several candidates at once; the arguments are columns of those of ``score``."""
        columns = ColumnScores(self._scorer, capacities, used, number=len(touched))
        compactness_of = {counts: _compactness(counts) for counts in {*touched}}
        compact = np.array([compactness_of[counts] for counts in touched], dtype=np.float64)
        tidy = np.array([part or 0.0 for part in fragmentation], dtype=np.float64)
        points = columns.score(), columns.fit(), columns.sra()
        parts = self._parts(points, columns.keeps_proportion(), compact, tidy)
        total, fit, sra, compactness, *raw_parts = [repeat(None) if part is None else part.tolist() for part in parts]
        tidiness = fragmentation if self._profile.fragmentation else repeat(None)
        return [*map(Score, total, fit, sra, compactness, tidiness, touched, *raw_parts)]

    def _parts(self, points: tuple[Any, Any, Any], keeps_proportion: Any, compact: Any, tidy: Any) -> Sequence[Any]:
        """Return the fields of scores but what is only passed on, as numbers or columns of them."""
        profile, strategy, (score, raw_fit, raw_sra) = self._profile, self._profile.strategy, points
        # Term by term as ``candidates.ranking`` adds them, so that equal candidates are equal here as well.
        best = score * self._per_point + self._per_compactness * MAX_COMPACTNESS
        total = best - self._per_compactness * (MAX_COMPACTNESS - compact) + self._per_tidiness * tidy
        return (
            total,
            raw_fit / float(strategy.fit.weight) if strategy.fit and strategy.fit.weight else None,
            raw_sra / float(strategy.sra.weight) if strategy.sra and strategy.sra.weight else None,
            compact if profile.compactness else None,
            keeps_proportion if strategy.proportional else None,
            raw_fit if strategy.fit else None,
            raw_sra if strategy.sra else None,
        )


def _compactness(touched: Counts) -> float:
    return compactness([max(1, number) for number in touched])


def score(
    profile: RankingProfile,
    requested: ResourceAmounts,
    node: ScoredNode,
    *,
    own: ResourceAmounts,
    touched: Counts,
    fragmentation: float | None = None,
) -> Score:
    """Return the score of one candidate; the arguments are those of ``CandidateScorer``, and of its ``score``.

    >>> verdict = score(RankingProfile(), {"VCPU": 4}, ScoredNode({"VCPU": 16}), own={"VCPU": 4}, touched=(2, 2))
    >>> verdict.total, verdict.fit, verdict.sra, verdict.compactness
    (83.0, 75.0, 100.0, 40.0)
    """
    scorer = CandidateScorer(profile, requested, own, node.allocatable)
    capacities, used = ([amounts.get(name, 0) for name in scorer.classes] for amounts in node)
    return scorer.score(capacities, used, touched, fragmentation)


Provider = TypeVar("Provider", int, str)

NO_TREE = -1


@dataclass(frozen=True, slots=True)
class TakenRows(Generic[Provider]):
    """What requests take: a row for each provider, by id or by uuid, of each request, in their order.

    ``sizes`` has the number of rows of each request, ``amounts`` the index among the ``distinct`` amounts of each row.
    """

    sizes: Sequence[int]
    providers: Sequence[Provider]
    amounts: Sequence[int]
    distinct: Sequence[ResourceAmounts]

    @classmethod
    def from_requests(cls, requests: Sequence[Mapping[Provider, ResourceAmounts]]) -> "TakenRows[Provider]":
        """Return the rows of requests, each of them provider -> what is taken from it."""
        amounts = [amounts for request in requests for amounts in request.values()]
        providers = [provider for request in requests for provider in request]
        return cls([*map(len, requests)], providers, range(len(amounts)), amounts)

    def by_request(self) -> Iterable[tuple[int, slice]]:
        """Return the number of each request and its rows."""
        ends = np.cumsum([0, *self.sizes]).tolist()
        return enumerate(map(slice, ends, ends[1:]))


class ScoredRequest(NamedTuple):
    """The score of a request, and whether its providers currently have room for it; if not, the score is 0."""

    score: Score
    has_room: bool


class PlacesOfCloud(NamedTuple):
    """Which providers of a cloud are places of each level, outermost first, and which share with other trees."""

    levels: Sequence[Flags]
    sharing: Flags


class RequestColumns:
    """What requests take, on the columns of a cloud; ``class_ids`` returns the ids of those classes that exist."""

    def __init__(
        self,
        taken: TakenRows[int],
        columns: CloudColumns,
        places: PlacesOfCloud,
        class_ids: Callable[[Collection[str]], Mapping[str, int]],
    ) -> None:
        self._taken = taken
        self._columns = columns
        self._places = places
        self._class_ids = class_ids
        self._request: Ints = np.repeat(np.arange(len(taken.sizes)), np.array(taken.sizes, dtype=np.int64))
        self._at = columns.providers.positions(taken.providers)
        self._amounts: Ints = np.array(taken.amounts, dtype=np.int64)
        self._tree = columns.providers.trees[self._at]
        stays = ~places.sharing[self._at]
        self._tree_of_request = np.full(len(taken.sizes), NO_TREE)
        self._tree_of_request[self._request[stays]] = self._tree[stays]
        # The rows of its tree are a request's own, or all if it has none.
        node = self._tree_of_request[self._request]
        self._has_tree = node != NO_TREE
        self._is_own = ~self._has_tree | (self._tree == node)
        self.in_several_trees: list[int] = np.unique(self._request[stays & (self._tree != node)]).tolist()
        """The indices of requests that take from several trees, sharing providers aside."""

    def scored(
        self, profile: RankingProfile, *, node_classes: Collection[str] = (), judge: DeviceJudge | None = None
    ) -> list[ScoredRequest]:
        """Return the scores of the requests, in order, and whether there is room for each.

        ``node_classes`` as in ``NodeScorer``; ``judge`` judges devices, if the profile counts fragmentation.
        """
        scores: dict[int, Score] = {}
        touched, tidiness = self._touched(), self._tidiness(judge)
        groups = []
        for (total, own), members in self._by_amounts().items():
            groups.append((CandidateScorer(profile, dict(total), dict(own), node_classes), members))
        ids = self._class_ids({name for scorer, _members in groups for name in scorer.classes})
        sums = {name: self._sums(self._columns.sums(id_)) for name, id_ in ids.items()}
        nothing = np.zeros((2, len(self._taken.sizes)), dtype=np.int64)
        for scorer, members in groups:
            capacity, used = ([sums.get(name, nothing)[side][members] for name in scorer.classes] for side in (0, 1))
            places, fragmentation = [touched[member] for member in members], [tidiness[member] for member in members]
            of_members = scorer.scores(capacity, used, touched=places, fragmentation=fragmentation)
            scores.update(zip(members, of_members, strict=True))
        return [
            ScoredRequest(scores[number] if has_room else scores[number].without_room(), has_room)
            for number, has_room in enumerate(self._has_room())
        ]

    def _by_amounts(self) -> Mapping[tuple[frozenset[tuple[str, int]], ...], list[int]]:
        """Return which requests take the same in all, and the same of that from their own tree."""
        marks_of_rows = (self._amounts * 2 + self._is_own).tolist()
        alike: dict[tuple[int, ...], list[int]] = defaultdict(list)
        for request, rows in self._taken.by_request():
            alike[tuple(marks_of_rows[rows])].append(request)
        by_amounts: dict[tuple[frozenset[tuple[str, int]], ...], list[int]] = defaultdict(list)
        for marks, members in alike.items():
            total = summed([self._taken.distinct[mark // 2] for mark in marks])
            own = summed([self._taken.distinct[mark // 2] for mark in marks if mark % 2])
            by_amounts[frozenset(total.items()), frozenset(own.items())] += members
        return by_amounts

    @cached_property
    def _nodes(self) -> tuple[Ints, Ints]:
        """The trees that make up the node of each request: indices of requests, and of trees."""
        trees = len(self._columns.providers.roots)
        nodes = np.unique(self._request[self._is_own] * trees + self._tree[self._is_own])
        return nodes // trees, nodes % trees

    def _sums(self, of_trees: TreeSums) -> tuple[Ints, Ints]:
        """Return what the node of each request has and uses, given what each tree does."""
        requests, trees = self._nodes
        capacity, used = np.zeros((2, len(self._taken.sizes)), dtype=np.int64)
        np.add.at(capacity, requests, of_trees.capacity[trees])
        np.add.at(used, requests, of_trees.used[trees])
        return capacity, used

    def _touched(self) -> list[tuple[int, ...]]:
        """Return how many places of each level each request touches in its tree."""
        rows = self._is_own & self._has_tree
        request, at, providers = self._request[rows], self._at[rows], self._columns.providers
        counts = []
        for is_place in self._places.levels:
            nearest = providers.nearest(at, is_place)
            pairs = np.unique((request * len(providers.ids) + nearest)[nearest >= 0])
            counts.append(np.bincount(pairs // max(1, len(providers.ids)), minlength=len(self._taken.sizes)).tolist())
        return [*zip(*counts, strict=True)] if counts else [()] * len(self._taken.sizes)

    def _has_room(self) -> list[bool]:
        """Tell for each request whether every provider has room for what is taken from it."""
        has_room: Flags = np.ones(len(self._taken.sizes), dtype=bool)
        for name, class_id in self._class_ids({name for amounts in self._taken.distinct for name in amounts}).items():
            taken = np.array([amounts.get(name, 0) for amounts in self._taken.distinct], dtype=np.int64)[self._amounts]
            rows = np.flatnonzero(taken)
            free = self._columns.left(class_id, self._at[rows])
            has_room[self._request[rows[taken[rows] > free]]] = False
        listed: list[bool] = has_room.tolist()
        return listed

    def _tidiness(self, judge: DeviceJudge | None) -> Sequence[float | None]:
        """Return how useful what each request leaves of devices is; None without a judge, and for sharing providers."""
        tidiness: list[float | None] = [None] * len(self._taken.sizes)
        if judge:
            free = self._free_in_trees(judge.classes)
            for request, rows in self._taken.by_request():
                if (tree := int(self._tree_of_request[request])) != NO_TREE:
                    taken = zip(self._taken.providers[rows], self._taken.amounts[rows], strict=True)
                    own = {id_: self._taken.distinct[number] for id_, number in taken if id_ in free[tree]}
                    tidiness[request] = judge.score(free[tree], own)
        return tidiness

    def _free_in_trees(self, classes: Iterable[str]) -> Mapping[int, Mapping[int, dict[str, int]]]:
        """Return what the providers of the trees that anything is taken from have left of some classes, by tree."""
        providers = self._columns.providers
        at = providers.positions_in(np.unique(self._tree))
        ids, trees = providers.ids[at].tolist(), providers.trees[at].tolist()
        free: dict[int, dict[int, dict[str, int]]] = defaultdict(dict)
        by_id = {id_: free[tree].setdefault(id_, {}) for id_, tree in zip(ids, trees, strict=True)}
        for name, class_id in self._class_ids({*classes}).items():
            for id_, amount in zip(ids, self._columns.left(class_id, at).tolist(), strict=True):
                by_id[id_][name] = amount
        return free
