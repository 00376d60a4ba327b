"""The scores of allocation requests: of what each takes from one tree, many at once, on the columns of a cloud.

A request is scored on one node: the tree it takes from. What providers of other trees share with it is neither part of
the node nor charged to it, even if it is requested. What sharing providers serve alone is taken from their own trees,
which together are the node.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from placement.allocators.ranking_profile import RankingProfile
from placement.candidates.fragmentation import DeviceJudge
from placement.candidates.scores import CandidateScorer, Score
from placement.cloud.columns import CloudColumns, TreeSums
from placement.cloud.providers import Flags, Ints
from placement.domain.quantities import ResourceAmounts, summed

Provider = TypeVar("Provider", int, str)

NO_TREE = -1


@dataclass(frozen=True, slots=True)
class TakenRows(Generic[Provider]):
    """What requests take: a row for each provider of each request, in their order.

    Args:
        sizes: the number of rows of each request.
        providers: the provider of each row, by id or by uuid.
        amounts: the index of what each row takes among the distinct amounts.
        distinct: the distinct amounts; most requests of a scheduler take the same.
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
    """What requests take, on the columns of a cloud.

    Args:
        taken: what each takes.
        columns: the cloud.
        places: its places.
        class_ids: returns the ids of classes by name, of those that exist.
    """

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
        self._find_trees()

    def _find_trees(self) -> None:
        """Find the tree of each request, and which rows are its own: those of its tree, or all if it has none."""
        self._tree = self._columns.providers.trees[self._at]
        stays = ~self._places.sharing[self._at]
        self._tree_of_request = np.full(len(self._taken.sizes), NO_TREE)
        self._tree_of_request[self._request[stays]] = self._tree[stays]
        node = self._tree_of_request[self._request]
        self._has_tree = node != NO_TREE
        self._is_own = ~self._has_tree | (self._tree == node)
        self.in_several_trees: list[int] = np.unique(self._request[stays & (self._tree != node)]).tolist()
        """The indices of requests that take from several trees, sharing providers aside."""

    def scored(
        self, profile: RankingProfile, *, families: Collection[str] = (), judge: DeviceJudge | None = None
    ) -> list[ScoredRequest]:
        """Return the scores of the requests, in order, and whether there is room for each.

        Args:
            profile: the weights.
            families: every class that providers may have; needed where the profile names scarce resources by family.
            judge: judges devices, if the profile counts fragmentation.
        """
        scores: dict[int, Score] = {}
        touched, tidiness = self._touched(), self._tidiness(judge)
        groups = [
            (CandidateScorer(profile, dict(total), dict(own), families), members)
            for (total, own), members in self._by_amounts().items()
        ]
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
