"""Scores of allocation requests, given as for POST /planner/v1/scores, or found for the page to try one out."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import os_traits

from placement.allocators.ranking_profile import RankingProfile
from placement.candidates.scores import PlacesOfCloud, RequestColumns, Score, ScoredRequest, TakenRows
from placement.candidates.search import Candidate
from placement.domain.search_plan import Plan
from placement.errors import InvalidAt
from placement.services.allocation_candidates import Answer, CandidateQuestion, Explained, answer_to, explained
from placement.services.cloud_cache import cloud_in
from placement.services.fragmentation import FragmentationJudge
from placement.store.connection.database import Transaction, reads, reads_anywhere
from placement.store.providers import ids_by_uuid
from placement.store.search.names import Named, named_providers

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
    """Return the score of each request by a profile and its judge, in order, all in one snapshot.

    ``levels`` maps names to the traits of places, outermost first. InvalidAt if a provider or class does not exist, or
    a request takes from several trees.
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
    sets.read(traits=traits.values())
    nobody = np.zeros(len(columns.providers.ids), dtype=bool)
    *places, sharing = [sets.with_trait(traits[name]) if name in traits else nobody for name in names]
    return RequestColumns(taken, columns, PlacesOfCloud(places, sharing), class_ids)


def scored(
    tx: Transaction, columns: RequestColumns, profile: RankingProfile, judge: FragmentationJudge | None
) -> list[ScoredRequest]:
    """Return the scores of requests by a profile and its judge, in a snapshot."""
    node_classes = cloud_in(tx).node_classes(profile)
    return columns.scored(profile, node_classes=node_classes, judge=judge.in_snapshot(tx) if judge else None)


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


@dataclass(frozen=True, slots=True)
class Showing:
    """What a trial should show: ``count`` candidates from ``first`` on, their scores, and why an answer is empty."""

    first: int = 0
    count: int = 10
    profile: RankingProfile | None = None
    levels: Mapping[str, str] | None = None
    explains: bool = False


@dataclass(frozen=True, slots=True)
class CandidateInDetail:
    """A candidate: the root of its tree, what it takes of each provider by class, and the suffixes that each serves."""

    root: int
    taken: Mapping[int, Mapping[str, int]]
    groups: Mapping[int, Sequence[str]]
    score: Score | None = None


@dataclass(frozen=True, slots=True)
class Trial:
    """All candidates, some of them in detail, and the names of the providers in their trees, by id."""

    answer: Answer
    shown: Sequence[CandidateInDetail]
    names: Mapping[int, Named]
    explained: Explained | None = None


@reads_anywhere
def trial(tx: Transaction, question: CandidateQuestion, showing: Showing) -> Trial:
    """Find the candidates for a request and look at some of them in detail, in one snapshot; raise as ``answer_to``."""
    answer = answer_to(tx, question)
    if not answer.candidates:
        profile = question.ranking.profile if question.ranking else None
        why = (
            explained(tx, question.request, locks=question.options.locks, profile=profile) if showing.explains else None
        )
        return Trial(answer, (), {}, why)
    chosen = answer.candidates[showing.first : showing.first + showing.count]
    shown = _scored(tx, [_laid_out(answer.plan, candidate) for candidate in chosen], showing, judge=question.judge)
    members = answer.providers.members
    roots = {members[provider].root_id for candidate in shown for provider in candidate.taken}
    names = named_providers(tx, [member.id for member in members.values() if member.root_id in roots])
    return Trial(answer, shown, names)


def _scored(
    tx: Transaction, served: list[CandidateInDetail], showing: Showing, *, judge: FragmentationJudge | None
) -> list[CandidateInDetail]:
    if showing.profile is None:
        return served
    # A provider that only serves groups without resources gives nothing.
    taken = [{provider: amounts for provider, amounts in candidate.taken.items() if amounts} for candidate in served]
    columns = request_columns(tx, TakenRows.from_requests(taken), showing.levels or {})
    scores = scored(tx, columns, showing.profile, judge)
    return [replace(candidate, score=request.score) for candidate, request in zip(served, scores, strict=True)]


def _laid_out(plan: Plan, candidate: Candidate) -> CandidateInDetail:
    root, choice = candidate
    taken: dict[int, dict[str, int]] = {}
    groups: dict[int, list[str]] = {}
    for slot, provider in zip(plan.slots, choice, strict=True):
        amounts = taken.setdefault(provider, {})
        for name, amount in slot.resources:
            amounts[name] = amounts.get(name, 0) + amount
        suffixes = groups.setdefault(provider, [])
        if slot.suffix not in suffixes:
            suffixes.append(slot.suffix)
    return CandidateInDetail(root, taken, groups)
