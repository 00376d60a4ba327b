"""Score given allocation requests on the current state: the use case behind POST /planner/v1/scores."""

from collections.abc import Collection, Mapping
from functools import partial

import numpy as np
import os_traits

from placement.allocators.ranking_profile import RankingProfile
from placement.candidates.ranking import Ranking
from placement.candidates.scores import PlacesOfCloud, RequestColumns, ScoredRequest, TakenRows
from placement.errors import InvalidAt
from placement.services.cloud_cache import cloud_in
from placement.services.fragmentation import FragmentationJudge
from placement.services.resource_classes import classes_in_families
from placement.store.connection.database import Transaction, reads
from placement.store.providers import ids_by_uuid

SHARING: str = os_traits.MISC_SHARES_VIA_AGGREGATE

IDS = "ids by uuid"
"""The name of the ids, and the roots, of the providers that were named last, among what was derived from trees."""

BYTES_OF_ID = 300
"""What a provider's uuid, id and root take."""


@reads
def scores(
    tx: Transaction,
    requests: TakenRows[str],
    profile: RankingProfile,
    levels: Mapping[str, str],
    *,
    judge: FragmentationJudge | None = None,
) -> list[ScoredRequest]:
    """Return the score of each request by a profile, in order, all in one snapshot.

    A profile that judges devices costs more than others: the trees are read as a whole.

    Args:
        tx: the transaction.
        requests: what each takes, from providers by uuid.
        profile: the weights.
        levels: name of a level -> trait of its places, outermost first.
        judge: the profile's judge, if it has one.

    Raises:
        InvalidAt: a provider or class does not exist, or a request takes from several trees.
    """
    ids = _ids(tx, requests.providers)
    _check_names(tx, requests, ids)
    taken = TakenRows(requests.sizes, [ids[uuid] for uuid in requests.providers], requests.amounts, requests.distinct)
    columns = request_columns(tx, taken, levels)
    if columns.in_several_trees:
        path = _path(columns.in_several_trees[0])
        raise InvalidAt(path, "The providers are in several trees; a request is scored in one tree.")
    return scored(tx, columns, profile, judge)


def request_columns(tx: Transaction, taken: TakenRows[int], levels: Mapping[str, str]) -> RequestColumns:
    """Return what requests take from the cloud that a snapshot shows; the arguments are those of ``scores``."""
    cloud, class_ids = cloud_in(tx), partial(tx.names.classes.ids, tx.connection)
    names = (*levels.values(), SHARING)
    columns, sets, traits = cloud.columns, cloud.sets, tx.names.traits.ids(tx.connection, {*names})
    sets.read_traits(traits.values())
    nobody = np.zeros(len(columns.providers.ids), dtype=bool)
    *places, sharing = [sets.with_trait(traits[name]) if name in traits else nobody for name in names]
    return RequestColumns(taken, columns, PlacesOfCloud(places, sharing), class_ids)


def scored(
    tx: Transaction, columns: RequestColumns, profile: RankingProfile, judge: FragmentationJudge | None
) -> list[ScoredRequest]:
    """Return the scores of requests by a profile and its judge, in a snapshot."""
    families = classes_in_families(tx, Ranking(profile))
    return columns.scored(profile, families=families, judge=judge.in_snapshot(tx) if judge else None)


def _path(position: int) -> tuple[str | int, ...]:
    return ("allocation_requests", position, "allocations")


def _ids(tx: Transaction, uuids: Collection[str]) -> Mapping[str, int]:
    """Return the ids of those providers that exist. Successive requests name much the same ones, which are kept."""
    cloud = cloud_in(tx)
    kept = cloud.kept.find(IDS)
    ids: dict[str, int] = kept.value if kept is not None else {}
    if kept is not None and kept.changed:
        roots = cloud.columns.providers.root_of(ids.values())
        unchanged = {id_ for id_, root in roots.items() if root not in kept.changed}
        ids = {uuid: id_ for uuid, id_ in ids.items() if id_ in unchanged}
    if unknown := {*uuids} - ids.keys():
        ids = {uuid: ids[uuid] for uuid in uuids if uuid in ids} | ids_by_uuid(tx, unknown)
        cloud.kept.keep(IDS, ids, size=BYTES_OF_ID * len(ids))
    return ids


def _check_names(tx: Transaction, requests: TakenRows[str], ids: Mapping[str, int]) -> None:
    """Refuse the first provider or class that does not exist."""
    classes = tx.names.classes.ids(tx.connection, {name for amounts in requests.distinct for name in amounts})
    is_known = [amounts.keys() <= classes.keys() for amounts in requests.distinct]
    if all(is_known) and all(map(ids.__contains__, requests.providers)):
        return
    for request, rows in requests.by_request():
        for uuid, number in zip(requests.providers[rows], requests.amounts[rows], strict=True):
            path = (*_path(request), uuid)
            if uuid not in ids:
                raise InvalidAt(path, "There is no such resource provider.")
            if not is_known[number]:
                name = next(name for name in requests.distinct[number] if name not in classes)
                raise InvalidAt((*path, "resources", name), "There is no such resource class.")
