"""Trees that can serve a request are the same whatever was read before, and what is kept of conditions is current."""

from collections.abc import Collection
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings

from placement.allocators.ranking_profile import RankingProfile
from placement.candidates.compose.slots import RequestBudget
from placement.candidates.ranking import Ranking
from placement.candidates.search import Candidate, candidates_in
from placement.domain.search_plan import CandidateRequest, RequestGroup, plan_for
from placement.domain.tree import Tree
from placement.services.allocation_candidates import SearchOptions, answer_to
from placement.services.cloud_cache import cloud_in
from placement.store.connection.database import Database
from placement.store.connection.unit_of_work import Transaction, reads
from placement.store.search.names import ids_for
from tests.databases import without_caches
from tests.examples import examples
from tests.small_clouds import load, random_situation, situations
from tests.store.rows import DISK_GB, VCPU, add_providers, allocate, run, stocking
from tests.store.statements import statements

on_one_database = examples(100, settings(suppress_health_check=[HealthCheck.function_scoped_fixture]))


@pytest.fixture
def database(migrated: Database) -> Database:
    """A database of each of the three kinds."""
    return migrated


def without_sharing(tree: Tree) -> Tree:
    """Make a tree yield candidates of sharing providers alone, which a search otherwise yields for one tree only."""
    tree.sharing = frozenset()
    return tree


@reads
def found(
    tx: Transaction,
    request: CandidateRequest,
    roots: Collection[int] | None = None,
    *,
    first: Collection[int] = (),
    adds_up: bool = False,
) -> set[Candidate]:
    """Return the candidates in some trees, or in all, after others were read one by one."""
    plan = plan_for(request)
    reader = cloud_in(tx).reader(plan, ids_for(tx, plan), adds_up=adds_up)
    for root in first:
        reader.trees_of([root])
    read = reader.all_trees() if roots is None else reader.trees_of(sorted(roots))
    return {*candidates_in(plan, map(without_sharing, read), RequestBudget())}


@on_one_database
@given(situation=situations)
def test_all_trees_give_what_each_gives_alone_whatever_was_read_before(database, situation):
    request, cloud = situation
    load(database, cloud)
    roots = sorted({provider.root for provider in cloud.values()})
    alone = set[Candidate]().union(*[found(database, request, [root]) for root in roots])
    assert found(database, request) == alone
    # A tree that was read in vain hides no other.
    assert found(database, request, first=roots[:1]) == alone
    assert found(database, request, roots, first=roots) == alone


@on_one_database
@given(situation=situations)
def test_no_candidate_is_lost_where_room_for_all_is_asked_for(database, situation):
    request, cloud = situation
    load(database, cloud)
    roots = sorted({node.root for node in cloud.values()})
    for some in (None, roots):
        assert found(database, request, some, first=roots, adds_up=True) == found(database, request)


def group(suffix: str, **resources: int) -> RequestGroup:
    return RequestGroup(suffix=suffix, resources=resources)


@reads
def served(tx: Transaction, request: CandidateRequest) -> set[int]:
    """Return the roots of the trees that are composed for a request."""
    plan = plan_for(request)
    return {tree.root for tree in cloud_in(tx).reader(plan, ids_for(tx, plan), adds_up=True).all_trees()}


@pytest.mark.parametrize(
    ("groups", "roots"),
    [
        pytest.param([group("_A", VCPU=2), group("_B", VCPU=2)], {1, 2, 4}, id="all"),
        pytest.param([group("_A", VCPU=2), group("_B", VCPU=3)], {2, 4}, id="what is in use is not left"),
        pytest.param([group("_A", VCPU=2), group("_B", VCPU=6)], {4}, id="a provider over capacity takes nothing"),
        pytest.param([group("_A", VCPU=4), group("_B", VCPU=5)], set(), id="none"),
        pytest.param([group("_A", VCPU=1), group("_B", VCPU=1, DISK_GB=1)], {4}, id="of both classes"),
    ],
)
def test_trees_that_lack_room_for_all_groups_are_not_composed(database, groups, roots):
    """Twenty groups in 5,000 hosts none of which has room for them all took two seconds."""
    with database.writer.begin() as connection:
        add_providers(connection, 5)
        run(
            connection,
            "UPDATE resource_providers SET root_provider_id = 2, parent_provider_id = 2 WHERE id = 3",
            "UPDATE resource_providers SET root_provider_id = 4, parent_provider_id = 4 WHERE id = 5",
            *[stocking((id_, VCPU), total=total) for id_, total in ((1, 8), (2, 4), (3, 4), (4, 8), (5, 8))],
            stocking((4, DISK_GB), total=1),
        )
        allocate(connection, "first", {(1, VCPU): 4, (5, VCPU): 8})
        run(connection, "UPDATE inventories SET total = 2, max_unit = 2 WHERE resource_provider_id = 5")
    assert served(database, CandidateRequest(groups=tuple(groups), isolate=False)) == roots


RANKING = Ranking(RankingProfile())


@reads
def asked(tx: Transaction, request: CandidateRequest) -> list[Candidate]:
    return answer_to(tx, request, SearchOptions(breadth_first=True), RANKING).candidates


def test_what_meets_conditions_is_current_whoever_gives_traits_and_aggregates(database):
    """Links come and go, by one transaction after the other; a cache that does not notice finds the wrong hosts."""
    chance = Random(11)
    for seed in range(8):
        request, cloud = random_situation(seed)
        load(database, cloud)
        for _ in range(4):
            with database.writer.begin() as connection:
                run(connection, chance.choice(LINKS).format(chance.choice(sorted(cloud))))
            assert asked(database, request) == asked(without_caches(database), request)


LINKS = (
    "DELETE FROM resource_provider_traits WHERE resource_provider_id = {0}",
    "DELETE FROM resource_provider_aggregates WHERE resource_provider_id = {0}",
    """INSERT INTO resource_provider_traits (resource_provider_id, trait_id) SELECT {0}, id FROM traits
       WHERE id IN (SELECT trait_id FROM resource_provider_traits)
       AND id NOT IN (SELECT trait_id FROM resource_provider_traits WHERE resource_provider_id = {0})""",
    """INSERT INTO resource_provider_aggregates (resource_provider_id, aggregate_id) SELECT {0}, id
       FROM placement_aggregates WHERE id NOT IN
       (SELECT aggregate_id FROM resource_provider_aggregates WHERE resource_provider_id = {0})""",
)


def test_another_flavor_with_the_same_conditions_asks_for_none_of_them_again(database):
    """Amounts are compared in columns: a new flavor costs what a known one does."""
    with database.writer.begin() as connection:
        for provider in add_providers(connection, 3):
            run(connection, stocking((provider, VCPU), total=8))

    def statements_for(amount: int) -> list[str]:
        forbidden = RequestGroup(resources={"VCPU": amount}, forbidden=frozenset({"HW_CPU_X86_AVX2"}))
        with statements(database) as sent:
            assert len(asked(database, CandidateRequest(groups=(forbidden,), limit=2))) == 2
        return [text for text in sent if "resource_provider_traits" in text and "max_unit" not in text]

    first = statements_for(1)
    again = statements_for(2)
    assert len(again) < len(first)
    assert not [text for text in again if "inventories" in text and "min_unit" in text]
