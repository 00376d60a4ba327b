"""Explanations of random requests to real databases, compared with the candidates that the search finds there."""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, example, given, settings

from placement.candidates.budget import RequestBudget
from placement.candidates.explain.conditions import Condition, ConditionKind, any_of_value
from placement.candidates.explain.explain import explain
from placement.candidates.search import candidates_in
from placement.domain.candidate_request import CandidateRequest
from placement.domain.search_plan import plan_for
from placement.services.allocation_candidates import SearchOptions, allocation_candidates
from placement.services.cloud_cache import cloud_in
from placement.services.explain import explanation_of
from placement.store.connection.database import Database
from placement.store.connection.unit_of_work import reads
from placement.store.search.names import ids_for
from tests.definition_of_candidates import without_part
from tests.examples import examples
from tests.small_clouds import Cloud, load, masks_of, random_situation, situations

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
    assert found.explanation.found == len(trees_with_candidates(database, request))
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


@on_one_database
@given(situation=situations)
def test_a_request_without_the_near_miss_finds_candidates_in_so_many_trees(database, situation):
    """If a request can be written without the condition."""
    request, cloud = situation
    load(database, cloud)
    near_misses = explanation_of(database, request).explanation.near_misses
    edits = [(near_miss, edited(request, near_miss.condition)) for near_miss in near_misses]
    edits = [(near_miss, less) for near_miss, less in edits if less is not None]
    for near_miss, less in edits:
        assert len(trees_with_candidates(database, less)) == near_miss.trees, near_miss


@on_one_database
@given(situation=situations)
def test_more_of_everything_helps_where_capacity_is_the_near_miss(database, situation):
    """If one group asks for the class; if several do, the condition of one group is removed, not that of all."""
    request, cloud = situation
    load(database, cloud)
    for near_miss in explanation_of(database, request).explanation.near_misses:
        condition = near_miss.condition
        asking = {group.suffix for group in request.groups if condition.resource_class in group.resources}
        if condition.kind == ConditionKind.CAPACITY and asking == set(condition.groups):
            load(database, with_more(cloud, condition.resource_class))
            assert len(trees_with_candidates(database, request)) == near_miss.trees
            return


def with_more(cloud: Cloud, name: str) -> Cloud:
    return {
        node.id: replace(
            node,
            inventories={
                found: replace(stock, total=1000) if found == name else stock
                for found, stock in node.inventories.items()
            },
        )
        for node in cloud.values()
    }


def edited(request: CandidateRequest, condition: Condition) -> CandidateRequest | None:
    """Return the request without a condition, or None if no request can express that."""
    match condition.kind:
        case ConditionKind.RESOURCE | ConditionKind.GROUP:
            return without_part(request, condition)
        case ConditionKind.GROUP_POLICY:
            return replace(request, isolate=False)
        case ConditionKind.SAME_SUBTREE:
            tied = [suffixes for suffixes in request.same_subtree if ",".join(sorted(suffixes)) != condition.value]
            return replace(request, same_subtree=tuple(tied))
        case ConditionKind.ONE_PROVIDER_PER_TREE:
            return replace(request, combines_nested=True)
        case ConditionKind.ROOT_REQUIRED:
            return replace(request, root_required=request.root_required - {condition.value})
        case ConditionKind.ROOT_FORBIDDEN:
            return replace(request, root_forbidden=request.root_forbidden - {condition.value[1:]})
        case ConditionKind.IN_TREE:
            return of_groups(request, condition, in_tree=lambda _tree: None)
        case ConditionKind.REQUIRED:
            return of_groups(request, condition, required=lambda sets: without_set(sets, condition.value))
        case ConditionKind.MEMBER_OF:
            return of_groups(request, condition, member_of=lambda sets: without_set(sets, condition.value))
        case ConditionKind.FORBIDDEN:
            return of_groups(request, condition, forbidden=lambda names: names - {condition.value[1:]})
        case ConditionKind.FORBIDDEN_AGGREGATES:
            return of_groups(request, condition, forbidden_aggregates=lambda _names: frozenset())
        case _:
            return None


def of_groups(request: CandidateRequest, condition: Condition, **edits) -> CandidateRequest | None:
    groups = [
        replace(group, **{name: edit(getattr(group, name)) for name, edit in edits.items()})
        if group.suffix in condition.groups
        else group
        for group in request.groups
    ]
    if not all(group.resources or group.required or group.member_of for group in groups):
        return None  # A group that requests nothing is invalid.
    return replace(request, groups=tuple(groups))


def without_set(sets, value: str):
    return tuple(any_of for any_of in sets if any_of_value(any_of) != value)
