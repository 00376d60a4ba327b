"""Equivalent trees: translating candidates between them gives the same as composing."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from placement.candidates.budget import RequestBudget
from placement.candidates.compose.composed import MAX_REMEMBERED
from placement.candidates.compose.slots import SlotComposer
from placement.domain.search_plan import Plan, plan_for
from placement.domain.tree import Tree
from tests.examples import examples
from tests.unit.candidates.searches import devices, requests, searches_of


def renamed(tree: Tree, ids: list[int]) -> Tree:
    """Return a tree whose providers have other ids in any order; its options keep their order."""
    new = dict(zip(tree.parents, ids, strict=False))  # There are more ids than providers.
    return Tree(
        new[tree.root],
        [[new[provider] for provider in row] for row in tree.options],
        room={(new[provider], name): room for (provider, name), room in tree.room.items()},
        met={new[provider]: mask for provider, mask in tree.met.items()},
        parents={new[child]: above and new[above] for child, above in tree.parents.items()},
        root_of={new[provider]: new[root] for provider, root in tree.root_of.items()},
    )


@st.composite
def clouds(draw) -> tuple[Plan, list[Tree]]:
    """Draw a plan and some trees for it that have the same options, except for the ids, and are otherwise similar."""
    plan = plan_for(draw(requests()))
    tree = draw(searches_of(plan))
    if draw(st.integers(0, 3)):
        tree = replace(tree, root_of={})
    trees = [tree]
    for _ in range(draw(st.integers(1, 4))):
        kept = draw(st.sampled_from(trees))
        other = replace(
            kept,
            room=draw(changed(kept.room, st.sampled_from([1.0, 2.0, 3.0, 9.0]))),
            met=draw(changed(kept.met, st.integers(0, 2 ** len(plan.trait_sets) - 1))),
            parents=draw(changed(kept.parents, st.just(kept.root)) | st.just(kept.parents)),
        )
        other.parents[kept.root] = None
        trees.append(other)
    return plan, [renamed(tree, draw(st.permutations(range(11, 18)))) for tree in trees]


@st.composite
def changed(draw, values: dict, others: st.SearchStrategy) -> dict:
    """Return the mapping with another value for one of its keys, or unchanged."""
    return {**values, draw(st.sampled_from(sorted(values))): draw(others)} if values and draw(st.booleans()) else values


@examples(60)
@given(clouds())
def test_candidates_are_those_of_a_search_in_each_tree_alone(cloud):
    plan, trees = cloud
    composer = SlotComposer(plan, RequestBudget())
    for tree in trees:
        assert list(composer.choices(tree)) == list(SlotComposer(plan, RequestBudget()).choices(tree))


def test_what_was_not_composed_to_the_end_is_composed_again():
    plan, tree = devices(3, 4)
    composer = SlotComposer(plan, RequestBudget())
    first = next(composer.choices(tree))
    found = list(composer.choices(tree))
    assert found[0] == first
    assert len(found) == 24


def test_what_ran_out_of_steps_is_not_taken_for_all_there_is():
    plan, tree = devices(3, 4)
    budget = RequestBudget(per_tree=10)
    composer = SlotComposer(plan, budget)
    cut = list(composer.choices(tree))
    budget.per_tree = 1000
    assert len(cut) < len(list(composer.choices(tree))) == 24


def test_what_is_read_off_takes_steps_of_the_request():
    plan, tree = devices(3, 4)
    budget = RequestBudget()
    composer = SlotComposer(plan, budget)
    assert len(list(composer.choices(tree))) == 24
    assert budget.take(budget.left - 7)
    assert len(list(composer.choices(tree))) == 7
    assert budget.was_hit


def test_trees_with_very_many_candidates_are_not_kept():
    plan, tree = devices(4, 8)
    budget = RequestBudget()
    composer = SlotComposer(plan, budget)
    assert len(list(composer.choices(tree))) > MAX_REMEMBERED
    left = budget.left
    list(composer.choices(tree))
    assert left - budget.left > 2 * MAX_REMEMBERED
