"""Trees left out because groups of a same_subtree are never together, compared with trying every choice."""

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from placement.candidates.compose.devices import DeviceComposer
from placement.domain.candidate_request import RequestGroup
from placement.domain.places import Levels
from placement.domain.planner_request import PlannerGroup, PlannerRequest
from placement.domain.search_plan import plan_for
from placement.domain.tree import Tree
from tests.examples import examples

ROOT = 1
ROOT_OF = {7: 7, 8: 7, 9: 9}
"""Providers of two other trees. All others are of the tree itself."""

rows = st.lists(st.sampled_from([2, 3, 7, 8, 9]), min_size=1, max_size=3, unique=True)


def is_hopeless(options: list[list[int]], *, isolate: bool) -> bool:
    """Return what a composer says of groups that differ, all in one same_subtree."""
    names = [f"_{number}" for number in range(len(options))]
    groups = [RequestGroup(suffix=name, resources={"PGPU": number}) for number, name in enumerate(names, 1)]
    wanted = tuple([PlannerGroup(group=group) for group in groups])
    request = PlannerRequest(groups=wanted, same_subtree=(frozenset(names),), isolate=isolate)
    composer = DeviceComposer(request, plan_for(request.plain), Levels((), ()), locks={})
    return composer.is_hopeless(Tree(ROOT, options, sharing=ROOT_OF.keys(), root_of=ROOT_OF))


@examples(200)
@given(st.lists(rows, min_size=2, max_size=3), st.booleans())
def test_where_some_choice_is_in_one_tree_there_is_hope(options, isolate):
    roots = [
        {ROOT_OF.get(provider, ROOT) for provider in choice}
        for choice in product(*options)
        if not isolate or len(set(choice)) == len(choice)
    ]
    if any(len(of_choice) == 1 for of_choice in roots):
        assert not is_hopeless(options, isolate=isolate)
    elif not isolate:
        assert is_hopeless(options, isolate=isolate)


def test_groups_with_a_provider_each_that_only_pools_serve_are_never_in_one_subtree():
    assert is_hopeless([[7, 9], [7, 9]], isolate=True)
    assert not is_hopeless([[7, 9], [7, 9]], isolate=False)
    assert not is_hopeless([[7, 8], [7, 8]], isolate=True)
