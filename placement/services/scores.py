"""Score given allocation requests on the current state: the use case behind POST /planner/v1/scores."""

from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from functools import partial

import numpy as np
import os_traits

from placement.allocators.ranking_profile import RankingProfile
from placement.candidates.ranking import Ranking
from placement.candidates.request_scores import PlacesOfCloud, RequestColumns, ScoredRequest, Scoring, Taken
from placement.candidates.scores import Score
from placement.errors import InvalidAt
from placement.services.cloud_cache import CloudCache, SetsInSnapshot, columns_in
from placement.services.families import classes_in_families
from placement.services.fragmentation import FragmentationJudge
from placement.store.connection.unit_of_work import Transaction, reads
from placement.store.providers import ids_by_uuid

__all__ = ["Score", "ScoredRequest", "request_columns", "scores", "scoring_by"]

SHARING: str = os_traits.MISC_SHARES_VIA_AGGREGATE

IDS = "ids by uuid"
"""The name of the ids, and the roots, of the providers that were named last, among what was derived from trees."""

BYTES_OF_ID = 300
"""What a provider's uuid, id and root take."""

Allocations = Mapping[str, Mapping[str, int]]
"""Provider uuid -> resource class -> amount."""


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
    ids = _ids(tx, {uuid for request in requests for uuid in request}, cache)
    _check_names(tx, requests, ids)
    taken = [{ids[uuid]: amounts for uuid, amounts in request.items()} for request in requests]
    columns = request_columns(tx, taken, levels, cache=cache)
    if columns.in_several_trees:
        path = _path(columns.in_several_trees[0])
        raise InvalidAt(path, "The providers are in several trees; a request is scored in one tree.")
    return columns.scored(scoring_by(tx, profile, judge))


def request_columns(
    tx: Transaction, requests: Sequence[Taken], levels: Mapping[str, str], *, cache: CloudCache | None
) -> RequestColumns:
    """Return what requests take from the cloud that a snapshot shows; the arguments are those of ``scores``."""
    columns, class_ids = columns_in(tx, cache), partial(tx.names.classes.ids, tx.connection)
    names = (*levels.values(), SHARING)
    sets, traits = SetsInSnapshot(tx, columns, cache), tx.names.traits.ids(tx.connection, {*names})
    sets.read_traits(traits.values())
    nobody = np.zeros(len(columns.providers.ids), dtype=bool)
    *places, sharing = [sets.with_trait(traits[name]) if name in traits else nobody for name in names]
    return RequestColumns(requests, columns, PlacesOfCloud(places, sharing), class_ids)


def scoring_by(tx: Transaction, profile: RankingProfile, judge: FragmentationJudge | None) -> Scoring:
    """Return what a profile makes of requests in a snapshot."""
    known = classes_in_families(tx, Ranking(profile))
    return Scoring(profile, known, judge.device_judge_in(tx) if judge else None)


def _path(position: int) -> tuple[str | int, ...]:
    return ("allocation_requests", position, "allocations")


def _ids(tx: Transaction, uuids: Set[str], cache: CloudCache | None) -> Mapping[str, int]:
    """Return the ids of those providers that exist. Successive requests name much the same ones, which are kept."""
    moment = cache.moment(tx) if cache else None
    if cache is None or moment is None:
        return ids_by_uuid(tx, uuids)
    kept = cache.derived.find(moment, IDS)
    known: dict[str, int] = {}
    if kept is not None:
        places = [(uuid, kept.value[uuid]) for uuid in uuids & kept.value.keys()]
        known = {uuid: id_ for uuid, (id_, root) in places if root not in kept.changed}
    if unknown := uuids - known.keys():
        known |= ids_by_uuid(tx, unknown)
        roots = columns_in(tx, cache).providers.root_of(known.values())
        value = dict(zip(known, zip(known.values(), roots, strict=True), strict=True))
        cache.derived.keep(moment, IDS, value, size=BYTES_OF_ID * len(value))
    return known


def _check_names(tx: Transaction, requests: Sequence[Allocations], ids: Mapping[str, int]) -> None:
    """Refuse the first provider or class that does not exist."""
    distinct = {id(amounts): amounts for request in requests for amounts in request.values()}
    named = {name for amounts in distinct.values() for name in amounts}
    classes = tx.names.classes.ids(tx.connection, named)
    if len(classes) < len(named) or not all(ids.keys() >= request.keys() for request in requests):
        raise next(_unknown_names(requests, ids, classes))


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
