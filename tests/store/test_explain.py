"""Explanations of random requests to real databases, compared with the candidates that the search finds there."""

import pytest
from hypothesis import HealthCheck, example, given, settings

from placement.candidates.compose.slots import RequestBudget
from placement.candidates.explain.conditions import ConditionKind
from placement.candidates.explain.explain import explain
from placement.candidates.search import candidates_in
from placement.domain.search_plan import CandidateRequest, plan_for
from placement.services.allocation_candidates import SearchOptions, allocation_candidates
from placement.services.cloud_cache import cloud_in
from placement.services.explain import explanation_of
from placement.store.connection.database import Database
from placement.store.connection.unit_of_work import reads
from placement.store.search.names import ids_for
from tests.examples import examples
from tests.small_clouds import load, masks_of, random_situation, situations

on_one_database = examples(6, settings(suppress_health_check=[HealthCheck.function_scoped_fixture]))


@pytest.fixture
def database(migrated: Database) -> Database:
    """A database of each of the three kinds."""
    return migrated


@reads
def trees_with_candidates(tx, request: CandidateRequest) -> set[int]:
    """Return the roots of the trees in which GET /allocation_candidates finds candidates."""
    plan = plan_for(request)
    reader = cloud_in(tx).reader(plan, ids_for(tx, plan))
    trees = map(without_sharing, reader.all_trees())
    return {root for root, _choice in candidates_in(plan, trees, RequestBudget())}


def without_sharing(tree):
    """Make a tree yield candidates of sharing providers alone, which the search otherwise yields for one tree only."""
    tree.sharing = frozenset()
    return tree


@on_one_database
@given(situation=situations)
def test_a_request_is_explained_by_what_is_in_the_database(database, situation):
    request, cloud = situation
    load(database, cloud)
    found = explanation_of(database, request)
    assert found.explanation == explain(plan_for(request), masks_of(request, cloud))
    assert found.explanation.trees_with_candidates == len(trees_with_candidates(database, request))
    assert {named.uuid for named in found.providers.values()} == {
        cloud[provider].uuid for provider in found.explanation.providers()
    }


@on_one_database
@given(situation=situations)
@example(random_situation(2278)).via("in one of two aggregates itself, in the other one by its root")
@example(random_situation(2_377_589_480)).via("no provider has the trait, and the root is in a forbidden aggregate")
@example(random_situation(94)).via("a group that only forbids, in a tree that does not exist")
@example(random_situation(1147)).via("no provider has the trait, and another group asks for nothing")
@example(random_situation(1705)).via("all providers are forbidden, and no tree has the trait")
@example(random_situation(566)).via("some trees lack room for all groups, the others are forbidden by their roots")
def test_the_cause_in_a_word_is_the_one_of_the_explanation(database, situation):
    """Without examining trees, the cause may only be that no tree is left, or that the search rejected them all."""
    request, cloud = situation
    load(database, cloud)
    word = allocation_candidates(database, request, SearchOptions()).cause
    cause = explanation_of(database, request).explanation.cause
    assert (word is None) == (cause is None)
    if word is None or cause is None:
        return
    if word.kind == ConditionKind.EVERY_GROUP:
        assert cause.kind in OF_TREES
    elif word.kind == ConditionKind.TOGETHER:
        # Trees without room for all groups may be ruled out before the conditions on trees leave none of the others.
        assert cause.kind in SEARCHED + OF_TREES
    elif (word.kind, word.groups) != (cause.kind, cause.groups):
        # The word comes from providers; an explanation checks the traits of the unsuffixed group by tree, after all
        # conditions on providers. Where several conditions leave nobody, each may name another one.
        assert any(group.required for group in request.groups if not group.suffix)
        assert word.kind == ConditionKind.TRAIT_PLACEMENT or cause.kind in LATER
    else:
        assert cause.value.partition(":")[0].removeprefix("!") in word.value


OF_TREES = (
    ConditionKind.EVERY_GROUP,
    ConditionKind.ROOT_REQUIRED,
    ConditionKind.ROOT_FORBIDDEN,
    ConditionKind.REQUIRED,
    ConditionKind.FORBIDDEN_AGGREGATES,
    ConditionKind.IN_TREE,
)
LATER = (
    ConditionKind.EMPTY_GROUP,
    ConditionKind.EVERY_GROUP,
    ConditionKind.ROOT_REQUIRED,
    ConditionKind.ROOT_FORBIDDEN,
    ConditionKind.REQUIRED,
    ConditionKind.TRAIT_PLACEMENT,
)
SEARCHED = (
    *(
        ConditionKind.REQUIRED,
        ConditionKind.TRAIT_PLACEMENT,
        ConditionKind.GROUP_POLICY,
        ConditionKind.SAME_SUBTREE,
        ConditionKind.COMBINED_CAPACITY,
    ),
    ConditionKind.ONE_PROVIDER_PER_TREE,
)
