"""Score given allocation requests on the current state: the use case behind POST /planner/v1/scores."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import os_traits

from placement.allocators.ranking_profile import RankingProfile
from placement.candidates.device_judge import DeviceJudge
from placement.candidates.forest import Forest, Member
from placement.candidates.scores import Score
from placement.errors import InvalidAt
from placement.services.fragmentation import FragmentationJudge
from placement.store.connection.unit_of_work import Transaction, reads
from placement.store.providers import providers_by_uuid
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
) -> list[ScoredRequest]:
    """Return the score of each request by a profile, in order, all in one snapshot.

    Args:
        tx: the transaction.
        requests: what each takes from which provider.
        profile: the weights.
        levels: name of a level -> trait of its places, outermost first.
        judge: the profile's judge, if it has one.

    Raises:
        InvalidAt: a provider or class does not exist, or a request takes from several trees.
    """
    providers = providers_by_uuid(tx, {uuid for request in requests for uuid in request})
    _check_names(tx, requests, providers)
    trees = tree_summaries(tx, {provider.root_id for provider in providers.values()})
    forest = forest_of(trees, profile, levels, judge.device_judge_in(tx) if judge else None)
    found = []
    for position, request in enumerate(requests):
        taken = {providers[uuid].id: amounts for uuid, amounts in request.items()}
        if len(forest.roots(taken)) > 1:
            raise InvalidAt(_path(position), "The providers are in several trees; a request is scored in one tree.")
        found.append(ScoredRequest(forest.score(taken), forest.has_room(taken)))
    return found


def forest_of(
    trees: Summaries, profile: RankingProfile, levels: Mapping[str, str], judge: DeviceJudge | None = None
) -> Forest:
    """Return trees as a forest, to be scored by a profile; ``levels`` as for ``scores``."""
    return Forest(dict(_members(trees)), profile, list(levels.values()), judge)


def _path(position: int) -> tuple[str | int, ...]:
    return ("allocation_requests", position, "allocations")


def _check_names(tx: Transaction, requests: Sequence[Allocations], providers: Mapping[str, object]) -> None:
    """Refuse the first name that does not exist."""
    named = {name for request in requests for amounts in request.values() for name in amounts}
    classes = tx.names.classes.ids(tx.connection, named)
    for position, request in enumerate(requests):
        for uuid, amounts in request.items():
            if uuid not in providers:
                raise InvalidAt((*_path(position), uuid), "There is no such resource provider.")
            if unknown := [name for name in amounts if name not in classes]:
                path = (*_path(position), uuid, "resources", unknown[0])
                raise InvalidAt(path, "There is no such resource class.")


def _members(trees: Summaries) -> Iterator[tuple[int, Member]]:
    for provider, _uuid, root, parent in trees.members.values():
        stocks = [StockRow._make(row) for row in trees.stocks.get(provider, ())]
        names = [trees.class_names[stock.class_id] for stock in stocks]
        capacities = {name: stock.capacity for name, stock in zip(names, stocks, strict=True)}
        used = {name: int(stock.used) for name, stock in zip(names, stocks, strict=True)}
        traits = frozenset(trees.trait_names[trait] for trait in trees.traits.get(provider, ()))
        yield provider, Member(root, parent, capacities, used, traits, SHARING in traits)
