"""Searches, explanations and headroom on real databases are what brute force finds in the same small clouds."""

from collections.abc import Collection
from dataclasses import fields, replace
from random import Random

import pytest
from hypothesis import HealthCheck, assume, example, given, settings

from placement.allocators.bundle_packing import exactly
from placement.allocators.ranking_profile import RankingProfile
from placement.candidates.compose.slots import RequestBudget
from placement.candidates.explain.explain import explain
from placement.candidates.explain.explanation import ConditionKind
from placement.candidates.ranking import Ranking
from placement.candidates.search import Candidate, candidates_in
from placement.domain.search_plan import CandidateRequest, RequestGroup, plan_for
from placement.domain.tree import Tree
from placement.services.allocation_candidates import (
    Answer,
    CandidateQuestion,
    SearchOptions,
    allocation_candidates,
    explanation_of,
)
from placement.services.cloud_cache import cloud_in
from placement.services.planner.request_rooms import Listing, headrooms
from placement.store.connection.database import Database, Transaction, reads
from placement.store.search.names import ids_for
from tests.databases import statements, without_caches
from tests.definition_of_candidates import Definition
from tests.examples import examples
from tests.small_clouds import (
    AGGREGATES,
    CONDITIONS,
    TRAITS,
    Inventory,
    Node,
    load,
    masks_of,
    random_situation,
    shares_of,
    situations,
)
from tests.store.rows import add_hosts, run
from tests.unit.candidates.filling import TooLarge, filled

ON_ONE_DATABASE = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


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


@examples(100, ON_ONE_DATABASE)
@given(situation=situations)
def test_candidates_are_those_of_the_definition_whatever_was_read_before(database, situation) -> None:
    request, cloud = situation
    load(database, cloud)
    roots, definition = sorted({node.root for node in cloud.values()}), Definition(request, cloud)
    expected = {(root, choice) for root in roots for choice in definition.candidates(root)}
    assert found(database, request) == expected
    for root in roots:
        assert found(database, request, [root]) == {each for each in expected if each[0] == root}
    for adds_up in (False, True):
        # A tree that was read in vain hides no other.
        assert found(database, request, first=roots[:1], adds_up=adds_up) == expected
        assert found(database, request, roots, first=roots, adds_up=adds_up) == expected


RANKED = Ranking(RankingProfile())


def answer(database: Database, request: CandidateRequest, ranking: Ranking | None = RANKED) -> Answer:
    return allocation_candidates(
        database, CandidateQuestion(request, SearchOptions(breadth_first=ranking is not None), ranking)
    )


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


def test_what_meets_conditions_is_current_whoever_gives_traits_and_aggregates(database) -> None:
    """Links come and go, by one transaction after the other; a cache that does not notice finds the wrong hosts."""
    chance = Random(11)
    for seed in range(8):
        request, cloud = random_situation(seed)
        load(database, cloud)
        for _ in range(4):
            with database.writer.begin() as connection:
                run(connection, chance.choice(LINKS).format(chance.choice(sorted(cloud))))
            assert answer(database, request).candidates == answer(without_caches(database), request).candidates


def test_another_flavor_with_the_same_conditions_asks_for_none_of_them_again(database) -> None:
    """Amounts are compared in columns: a new flavor costs what a known one does."""
    add_hosts(database, 3)

    def statements_for(amount: int) -> list[str]:
        forbidden = RequestGroup(resources={"VCPU": amount}, forbidden=frozenset({"HW_CPU_X86_AVX2"}))
        with statements(database) as sent:
            assert len(answer(database, CandidateRequest(groups=(forbidden,), limit=2)).candidates) == 2
        return [text for text in sent if "resource_provider_traits" in text and "max_unit" not in text]

    first, again = statements_for(1), statements_for(2)
    assert len(again) < len(first)
    assert not [text for text in again if "inventories" in text and "min_unit" in text]


IN_PLACES = Ranking(RankingProfile(), (TRAITS[1], TRAITS[0]))
"""Any trait may represent a level."""


@pytest.mark.parametrize("ranking", [None, IN_PLACES], ids=["by id", "best first"])
@examples(9, ON_ONE_DATABASE)
@given(situation=situations)
@example(random_situation(2142)).via(
    "a provider whose parent has no trait and can serve nothing, in a place all the same"
)
def test_a_limit_that_leaves_nothing_out_changes_nothing(database, ranking, situation) -> None:
    """Without a limit, all trees are read before the search."""
    request, cloud = situation
    load(database, cloud)
    whole, limited = (answer(database, replace(request, limit=limit), ranking) for limit in (None, 1_000_000))
    assert (whole.candidates, whole.taken_from) == (limited.candidates, limited.taken_from)
    assert summaries(whole) == summaries(limited)


def summaries(found: Answer) -> dict[int, tuple]:
    """Return an answer's facts about each provider."""
    shown = found.providers
    return {
        id_: (member, sorted(map(tuple, shown.stocks.get(id_, []))), shown.traits.get(id_, []))
        for id_, member in shown.members.items()
    }


@examples(6, ON_ONE_DATABASE)
@given(situation=situations)
def test_a_request_is_explained_by_what_is_in_the_database(database, situation) -> None:
    request, cloud = situation
    load(database, cloud)
    explained = explanation_of(database, request)
    assert explained.explanation == explain(plan_for(request), masks_of(request, cloud))
    assert {named.uuid for named in explained.providers.values()} == {
        cloud[provider].uuid for provider in explained.explanation.providers()
    }


OF_TREES = {
    *(ConditionKind.EVERY_GROUP, ConditionKind.ROOT_REQUIRED, ConditionKind.ROOT_FORBIDDEN, ConditionKind.REQUIRED),
    *(ConditionKind.FORBIDDEN_AGGREGATES, ConditionKind.IN_TREE),
}
LATER = {
    *(ConditionKind.EMPTY_GROUP, ConditionKind.EVERY_GROUP, ConditionKind.ROOT_REQUIRED, ConditionKind.ROOT_FORBIDDEN),
    *(ConditionKind.REQUIRED, ConditionKind.TRAIT_PLACEMENT),
}
SEARCHED = {
    *(ConditionKind.REQUIRED, ConditionKind.TRAIT_PLACEMENT, ConditionKind.GROUP_POLICY, ConditionKind.SAME_SUBTREE),
    *(ConditionKind.COMBINED_CAPACITY, ConditionKind.ONE_PROVIDER_PER_TREE),
}


@examples(6, ON_ONE_DATABASE)
@given(situation=situations)
@example(random_situation(2278)).via("in one of two aggregates itself, in the other one by its root")
@example(random_situation(2_377_589_480)).via("no provider has the trait, and the root is in a forbidden aggregate")
@example(random_situation(94)).via("a group that only forbids, in a tree that does not exist")
@example(random_situation(1147)).via("no provider has the trait, and another group asks for nothing")
@example(random_situation(1705)).via("all providers are forbidden, and no tree has the trait")
@example(random_situation(566)).via("some trees lack room for all groups, the others are forbidden by their roots")
def test_the_cause_in_a_word_is_the_one_of_the_explanation(database, situation) -> None:
    """Without examining trees, the cause may only be that no tree is left, or that the search rejected them all."""
    request, cloud = situation
    load(database, cloud)
    word = allocation_candidates(database, CandidateQuestion(request)).cause
    cause = explanation_of(database, request).explanation.cause
    assert (word is None) == (cause is None)
    if word is None or cause is None:
        return
    if word.kind == ConditionKind.EVERY_GROUP:
        assert cause.kind in OF_TREES
    elif word.kind == ConditionKind.TOGETHER:
        # Trees without room for all groups may be ruled out before the conditions on trees leave none of the others.
        assert cause.kind in SEARCHED | OF_TREES
    elif (word.kind, word.groups) != (cause.kind, cause.groups):
        # The word comes from providers; an explanation checks the traits of the unsuffixed group by tree, after all
        # conditions on providers. Where several conditions leave nobody, each may name another one.
        assert any(group.required for group in request.groups if not group.suffix)
        assert word.kind == ConditionKind.TRAIT_PLACEMENT or cause.kind in LATER
    else:
        assert cause.value.partition(":")[0].removeprefix("!") in word.value


@examples(15, ON_ONE_DATABASE)
@given(situation=situations)
def test_the_headroom_is_what_filling_the_cloud_in_every_possible_way_finds(database, situation) -> None:
    """In the whole cloud, and in the trees of each aggregate."""
    request, cloud = situation
    load(database, cloud)
    room = headrooms(database, {"it": request}, Listing(aggregates=True)).rooms["it"]
    try:
        expected = filled(request, cloud)
        in_aggregates = {
            aggregate: filled(request, cloud, roots) if roots else 0
            for aggregate in AGGREGATES
            for roots in [{node.root for node in cloud.values() if aggregate in node.aggregates}]
        }
    except TooLarge:
        assume(False)
    copies = room.headroom.copies
    assert copies.least <= expected <= copies.max_count
    assert copies.is_exact or shares_of(cloud)
    of_aggregates = dict(room.aggregates)
    for aggregate, number in in_aggregates.items():
        copies = of_aggregates.get(aggregate)
        assert (number == 0) if copies is None else copies.least <= number <= copies.max_count


def test_every_condition_of_a_group_is_drawn() -> None:
    assert {*CONDITIONS} == {part.name for part in fields(RequestGroup)} - {"suffix", "resources"}


@pytest.mark.parametrize("condition", sorted(CONDITIONS))
def test_hosts_that_differ_in_one_condition_have_their_own_headroom(database, condition) -> None:
    """What copies can do is told by one host of each form."""
    host = Node(1, None, 1, {"VCPU": Inventory(4)})
    marked = replace(host, id=2, root=2, traits=frozenset(TRAITS), aggregates=frozenset(AGGREGATES))
    coarse = replace(host, id=3, root=3, inventories={"VCPU": Inventory(4, step_size=4)})
    cloud = {node.id: node for node in (host, marked, coarse)}
    load(database, cloud)
    for seed in range(4):
        asked = {condition: CONDITIONS[condition](Random(seed))}
        request = CandidateRequest(groups=(RequestGroup(suffix="_A", resources={"VCPU": 2}, **asked),))
        room = headrooms(database, {"it": request}).rooms["it"]
        assert room.headroom.copies == exactly(filled(request, cloud)), asked


def test_several_requests_have_what_each_has_alone(database) -> None:
    _request, cloud = random_situation(4)
    load(database, cloud)
    requests = {str(seed): random_situation(seed)[0] for seed in range(12)}
    alone = {name: headrooms(database, {name: request}).rooms[name] for name, request in requests.items()}
    together = headrooms(database, requests).rooms
    assert [room.headroom.copies for room in together.values()] == [room.headroom.copies for room in alone.values()]
