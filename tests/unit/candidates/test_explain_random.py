"""Explanations of random requests in random clouds, compared with trying everything."""

from hypothesis import given

from placement.candidates.explain.cloud import FilteredCloud
from placement.candidates.explain.conditions import ConditionKind
from placement.candidates.explain.demands import DemandFilters
from placement.candidates.explain.explain import explain
from placement.candidates.explain.near_misses import _conditions
from placement.domain.search_plan import plan_for
from tests.definition_of_candidates import Definition, without_part
from tests.examples import examples
from tests.small_clouds import facts_of, situations


@examples(80)
@given(situations)
def test_there_is_a_cause_exactly_if_trying_everything_finds_nothing(situation):
    request, cloud = situation
    explanation = explain(plan_for(request), facts_of(cloud))
    assert explanation.complete
    assert explanation.found == len(Definition(request, cloud).trees())
    assert (explanation.cause is None) == (explanation.found > 0)


@examples(80)
@given(situations)
def test_without_a_near_miss_so_many_trees_have_candidates(situation):
    request, cloud = situation
    for near_miss in explain(plan_for(request), facts_of(cloud)).near_misses:
        if near_miss.condition.kind in (ConditionKind.RESOURCE, ConditionKind.GROUP):
            definition = Definition(without_part(request, near_miss.condition), cloud)
        else:
            definition = Definition(request, cloud, near_miss.condition)
        assert near_miss.trees == len(definition.trees()), near_miss


@examples(50)
@given(situations)
def test_no_near_miss_is_missed(situation):
    request, cloud = situation
    facts = facts_of(cloud)
    explanation = explain(plan_for(request), facts)
    if explanation.cause is None:
        return
    named = {near_miss.condition for near_miss in explanation.near_misses}
    every = _conditions(FilteredCloud(plan_for(request), facts, DemandFilters(facts)))
    assert {condition for condition in every if Definition(request, cloud, condition).trees()} == {
        condition for condition in named if condition.kind not in (ConditionKind.RESOURCE, ConditionKind.GROUP)
    }
