"""Checks that searches with the orders and facts of earlier requests find what a search without any finds."""

from dataclasses import replace

from placement.candidates.planner.planner_search import search_for
from placement.candidates.ranking import Ranking
from placement.domain.candidate_request import CandidateRequest
from placement.domain.planner_request import PlannerRequest
from placement.domain.search_limits import SearchLimits
from placement.services.allocation_candidates import SearchOptions, answer_to
from placement.services.cloud_cache import CloudCache
from placement.services.planner.composers import PlannerOptions
from placement.services.planner.questions import question_for
from placement.store.connection.unit_of_work import Transaction, reads


@reads
def assert_plain_is_exact(
    tx: Transaction, request: CandidateRequest, ranking: Ranking, cache: CloudCache, limits: SearchLimits
) -> int:
    """Compare the best few candidates with the first of all; return how many there are."""
    options = SearchOptions(breadth_first=True, limits=limits)
    every = answer_to(tx, request, options, ranking).candidates
    for limit in (1, 4):
        for kept in (cache, cache, None):  # Asked again, what finds nothing is not searched.
            found = answer_to(tx, replace(request, limit=limit), options, ranking, cache=kept)
            assert found.candidates == every[:limit]
    return len(every)


@reads
def assert_planner_is_exact(
    tx: Transaction, request: PlannerRequest, options: PlannerOptions, cache: CloudCache
) -> None:
    """Compare all proposals for a request that counts places, and the bounds on these places."""
    anew, kept = [question_for(tx, request, replace(options, cache=of)) for of in (None, cache)]
    assert kept.least_places == anew.least_places
    expected, found = [list(search_for(one, wanted=1, first_trees=1).proposals()) for one in (anew, kept)]
    assert found == expected
