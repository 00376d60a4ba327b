"""Answers without a limit, which read all trees before the search, compared with limited answers that are complete."""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, example, given, settings

from placement.allocators.ranking_profile import RankingProfile
from placement.candidates.ranking import Ranking
from placement.domain.search_plan import CandidateRequest
from placement.services.allocation_candidates import Answer, SearchOptions, allocation_candidates
from placement.store.connection.database import Database
from tests.examples import examples
from tests.small_clouds import TRAITS, load, random_situation, situations

MORE_THAN_THERE_ARE = 1_000_000
LEVELS = (TRAITS[1], TRAITS[0])
"""Any trait may represent a level."""


@pytest.mark.parametrize("ranking", [None, Ranking(RankingProfile(), LEVELS)], ids=["by id", "best first"])
@examples(9, settings(suppress_health_check=[HealthCheck.function_scoped_fixture]))
@given(situation=situations)
@example(random_situation(2142)).via(
    "a provider whose parent has no trait and can serve nothing, in a place all the same"
)
def test_a_limit_that_leaves_nothing_out_changes_nothing(migrated, ranking, situation):
    request, cloud = situation
    load(migrated, cloud)
    whole = answer(migrated, replace(request, limit=None), ranking)
    limited = answer(migrated, replace(request, limit=MORE_THAN_THERE_ARE), ranking)
    assert whole.candidates == limited.candidates
    assert whole.taken_from == limited.taken_from
    assert summaries(whole) == summaries(limited)


def answer(database: Database, request: CandidateRequest, ranking: Ranking | None) -> Answer:
    return allocation_candidates(database, request, SearchOptions(breadth_first=ranking is not None), ranking)


def summaries(found: Answer) -> dict[int, tuple]:
    """Return an answer's facts about each provider."""
    of = found.providers
    return {
        id_: (member, sorted(map(tuple, of.stocks.get(id_, []))), of.traits.get(id_, []))
        for id_, member in of.members.items()
    }
