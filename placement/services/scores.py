"""Score given allocation requests on the current state: the use case behind POST /planner/v1/scores."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import os_traits

from placement.allocators.ranking_profile import RankingProfile
from placement.candidates.device_judge import DeviceJudge
from placement.candidates.forest import Forest, ForestSums, Member
from placement.candidates.ranking import Ranking
from placement.candidates.scores import CandidateScorer, Score
from placement.cloud.columns import Ints, places_in
from placement.errors import InvalidAt
from placement.services.cloud_cache import CloudCache, SetsInSnapshot, columns_in
from placement.services.families import classes_in_families
from placement.services.fragmentation import FragmentationJudge
from placement.store.connection.unit_of_work import Transaction, reads
from placement.store.providers import ids_by_uuid
from placement.store.search.summaries import StockRow, Summaries, tree_summaries

__all__ = ["Score", "ScoredRequest", "forest_of", "scores"]

SHARING: str = os_traits.MISC_SHARES_VIA_AGGREGATE

Allocations = Mapping[str, Mapping[str, int]]
"""Provider uuid -> resource class -> amount."""


class ScoredRequest(NamedTuple):
    """The score of a request, and whether its providers currently have room for it."""

    score: Score
    has_room: bool


@reads
def scores(
    tx: Transaction,
    requests: Sequence[Allocations],
    profile: RankingProfile,
    levels: Mapping[str, str],
    *,
    judge: FragmentationJudge | None = None,
    cache: CloudCache | None = None,
) -> list[ScoredRequest]:
    """Return the score of each request by a profile, in order, all in one snapshot.

    A profile that judges devices costs more than others: the trees are read as a whole.

    Args:
        tx: the transaction.
        requests: what each takes from which provider.
        profile: the weights.
        levels: name of a level -> trait of its places, outermost first.
        judge: the profile's judge, if it has one.
        cache: what is cached of the cloud.

    Raises:
        InvalidAt: a provider or class does not exist, or a request takes from several trees.
    """
    ids = ids_by_uuid(tx, {uuid for request in requests for uuid in request})
    classes = _checked_classes(tx, requests, ids)
    reader = _ForestReader(tx, cache, profile=profile, levels=[*levels.values()])
    forest = reader.forest(ids.values(), classes)
    if judge:
        trees = tree_summaries(tx, {member.root for member in forest.members.values()})
        forest = forest_of(trees, profile, levels, judge.device_judge_in(tx))
    found = []
    for position, request in enumerate(requests):
        taken = {ids[uuid]: amounts for uuid, amounts in request.items()}
        if len(taken) > 1 and len(forest.roots(taken)) > 1:
            raise InvalidAt(_path(position), "The providers are in several trees; a request is scored in one tree.")
        found.append(ScoredRequest(forest.score(taken), forest.has_room(taken)))
    return found


def forest_of(
    trees: Summaries, profile: RankingProfile, levels: Mapping[str, str], judge: DeviceJudge | None = None
) -> Forest:
    """Return trees that were read as a whole as a forest, to be scored by a profile; ``levels`` as for ``scores``."""
    members, amounts = dict[int, Member](), []
    for provider, _uuid, root, parent in trees.members.values():
        stocks = [StockRow._make(row) for row in trees.stocks.get(provider, ())]
        names = [trees.class_names[stock.class_id] for stock in stocks]
        capacities = {name: stock.capacity for name, stock in zip(names, stocks, strict=True)}
        used = {name: int(stock.used) for name, stock in zip(names, stocks, strict=True)}
        traits = frozenset(trees.trait_names[trait] for trait in trees.traits.get(provider, ()))
        left = {name: capacities[name] - used[name] for name in names}
        members[provider] = Member(root, parent, left, traits, SHARING in traits)
        amounts.append((root, capacities, used))
    return Forest(members, ForestSums.of_members(amounts), profile, levels=[*levels.values()], judge=judge)


def _path(position: int) -> tuple[str | int, ...]:
    return ("allocation_requests", position, "allocations")


def _checked_classes(tx: Transaction, requests: Sequence[Allocations], ids: Mapping[str, int]) -> dict[str, int]:
    """Return the ids of the requested classes; refuse the first name that does not exist."""
    named = {name for request in requests for amounts in request.values() for name in amounts}
    classes = tx.names.classes.ids(tx.connection, named)
    if len(classes) < len(named) or not all(ids.keys() >= request.keys() for request in requests):
        raise next(_unknown_names(requests, ids, classes))
    return classes


def _unknown_names(
    requests: Sequence[Allocations], uuids: Collection[str], classes: Collection[str]
) -> Iterator[InvalidAt]:
    for position, request in enumerate(requests):
        for uuid, amounts in request.items():
            if uuid not in uuids:
                yield InvalidAt((*_path(position), uuid), "There is no such resource provider.")
            if unknown := [name for name in amounts if name not in classes]:
                path = (*_path(position), uuid, "resources", unknown[0])
                yield InvalidAt(path, "There is no such resource class.")


class _ForestReader:
    """Takes of the cloud what the scores of given candidates depend on.

    Args:
        tx: the snapshot.
        cache: what is cached of the cloud.
        profile: the weights.
        levels: the traits of places, outermost first.
    """

    def __init__(
        self, tx: Transaction, cache: CloudCache | None, *, profile: RankingProfile, levels: Sequence[str]
    ) -> None:
        self._tx = tx
        self._profile = profile
        self._levels = levels
        self._columns = columns_in(tx, cache)
        self._sets = SetsInSnapshot(tx, self._columns, cache)

    def forest(self, named: Collection[int], classes: Mapping[str, int]) -> Forest:
        """Return the trees of some providers, to score requests that take these classes from them."""
        providers = self._columns.providers
        at = providers.with_ancestors(providers.positions([*named]))
        roots = providers.roots[providers.trees[at]].tolist()
        traits, left = self._traits(at), self._left(at, classes)
        members = {
            provider: Member(root, parent, left[provider], held := traits[provider], SHARING in held)
            for (provider, parent), root in zip(providers.parents_of(at).items(), roots, strict=True)
        }
        return Forest(members, self._sums({*roots}, classes), self._profile, levels=self._levels)

    def _traits(self, at: Ints) -> Mapping[int, frozenset[str]]:
        """Return which of the traits that matter some providers have, given their positions."""
        traits: dict[int, frozenset[str]] = defaultdict(frozenset)
        for name, trait in self._tx.names.traits.ids(self._tx.connection, {*self._levels, SHARING}).items():
            for provider in self._columns.providers.ids[at[self._sets.with_trait(trait)[at]]].tolist():
                traits[provider] |= {name}
        return traits

    def _left(self, at: Ints, classes: Mapping[str, int]) -> Mapping[int, dict[str, int]]:
        """Return what some providers have left of each class."""
        left: dict[int, dict[str, int]] = defaultdict(dict)
        for name, class_id in classes.items():
            stock = self._columns.stock(class_id)
            rows = places_in(stock.at, at)
            rows = rows[rows >= 0]
            amounts = np.trunc(stock.capacity[rows]).astype(np.int64) - stock.used[rows]
            for provider, amount in zip(
                self._columns.providers.ids[stock.at[rows]].tolist(), amounts.tolist(), strict=True
            ):
                left[provider][name] = amount
        return left

    def _sums(self, roots: Collection[int], requested: Collection[str]) -> ForestSums:
        """Return the sums of the classes by which trees are scored for requests of some classes."""
        known = classes_in_families(self._tx, Ranking(self._profile))
        # Scarce is what is not requested, so everything that may be scarce is summed, whatever the amounts.
        asked = dict.fromkeys(requested, 1)
        scorers = (CandidateScorer(self._profile, asked, own, known) for own in (asked, {}))
        names = tuple(sorted({name for scorer in scorers for name in scorer.classes}))
        ids = self._tx.names.classes.ids(self._tx.connection, names)
        rows = self._columns.sum_rows([ids.get(name) for name in names], (), roots)
        return ForestSums(names, {row[0]: row[1:] for row in rows})
