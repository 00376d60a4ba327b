"""Explanations of random requests in random clouds, compared with brute force."""

from collections import Counter
from dataclasses import replace

from hypothesis import example, given

from placement.candidates.explain.explain import NOT_REMOVABLE, explain
from placement.candidates.explain.explanation import OF_AMOUNTS, Condition, ConditionKind, Largest
from placement.candidates.explain.partial_search import stages, with_traits_apart
from placement.domain.search_plan import plan_for
from tests.definition_of_candidates import Definition, without_part
from tests.examples import examples
from tests.small_clouds import masks_of, random_situation, situations


@examples(50)
@given(situations)
def test_there_is_a_cause_exactly_if_trying_everything_finds_nothing(situation):
    request, cloud = situation
    explanation = explain(plan_for(request), masks_of(request, cloud))
    assert explanation.complete
    assert explanation.trees_with_candidates == len(Definition(request, cloud).trees())
    assert (explanation.cause is None) == (explanation.trees_with_candidates > 0)


@examples(50)
@given(situations)
def test_without_a_near_miss_so_many_trees_have_candidates(situation):
    request, cloud = situation
    for near_miss in explain(plan_for(request), masks_of(request, cloud)).near_misses:
        if near_miss.condition.kind in (ConditionKind.RESOURCE, ConditionKind.GROUP):
            definition = Definition(without_part(request, near_miss.condition), cloud)
        else:
            definition = Definition(request, cloud, near_miss.condition)
        assert near_miss.trees == len(definition.trees()), near_miss


@examples(30)
@given(situations)
def test_no_near_miss_is_missed(situation):
    request, cloud = situation
    explanation = explain(plan_for(request), masks_of(request, cloud))
    if explanation.cause is None:
        return
    every = [*conditions_of(explanation), *dict(stages(with_traits_apart(plan_for(request))))]
    helping = {one for one in every if one.kind not in NOT_REMOVABLE and Definition(request, cloud, one).trees()}
    amounts = {replace(one, kind=ConditionKind.AMOUNT) for one in every if one.kind == ConditionKind.CAPACITY}
    helping |= {
        amount
        for amount in amounts
        if not any(is_told_by(one, amount) for one in helping) and Definition(request, cloud, amount).trees()
    }
    named = {near_miss.condition for near_miss in explanation.near_misses}
    assert helping == {
        condition for condition in named if condition.kind not in (ConditionKind.RESOURCE, ConditionKind.GROUP)
    }


def conditions_of(explanation) -> list[Condition]:
    """Return all conditions that an explanation counts."""
    return [step.condition for demand in explanation.demands for step in demand.steps] + [
        step.condition for step in explanation.trees
    ]


def is_told_by(condition: Condition, amount: Condition) -> bool:
    """Tell whether a near miss already says that an amount is too large."""
    combined = condition.kind == ConditionKind.COMBINED_CAPACITY and condition.value == amount.resource_class
    return combined or (
        condition.kind in OF_AMOUNTS and (condition.groups, condition.value) == (amount.groups, amount.value)
    )


@examples(50)
@example(random_situation(815)).via("another provider has the amount, but lacks the trait of the only class")
@given(situations)
def test_the_largest_amount_is_what_trying_every_amount_finds(situation):
    """On any provider that could serve the group apart from the amount, in the trees of the near miss."""
    request, cloud = situation
    for near_miss in explain(plan_for(request), masks_of(request, cloud)).near_misses:
        condition = near_miss.condition
        if condition.kind not in OF_AMOUNTS:
            assert near_miss.largest is None
            continue
        name, _, asked = condition.value.partition(":")
        any_amount = Definition(request, cloud, replace(condition, kind=ConditionKind.AMOUNT))
        slots = [
            one for one in any_amount.slots if one.suffix in condition.groups and (name, int(asked)) in one.resources
        ]
        trees = Definition(request, cloud, condition).trees()
        providers = {provider for slot in slots for root in trees for provider in any_amount.options(slot, root)}
        if condition.groups == ("",) and sum(not slot.suffix for slot in any_amount.slots) == 1:
            required = any_amount.groups[""].required  # by the only provider of the group
            providers = {at for at in providers if all(any_of & cloud[at].traits for any_of in required)}
        found = Counter(largest_of(cloud[provider].inventories[name]) for provider in providers)
        most = max(found, default=0)
        assert near_miss.largest == (Largest(most, found[most]) if most else None)


def largest_of(stock) -> int:
    return max(filter(stock.fits, range(1, 1 + stock.total * 2)), default=0)
