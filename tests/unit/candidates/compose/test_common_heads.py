"""Whether trees serve groups of a same_subtree, compared with composing the best way in them."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from placement.allocators.budget import Budget
from placement.candidates.compose.common_heads import TREES_IN_VAIN
from placement.candidates.compose.devices import DeviceComposer
from placement.domain.places import Levels
from placement.domain.planner_request import PlannerRequest, Within
from placement.domain.planner_tree import PlannerTree
from placement.domain.search_plan import Plan, plan_for
from tests.examples import examples
from tests.unit.candidates.compose.test_device_room import request_of, stocks, tree_of, wanted

LEVELS = Levels(("numa",), ("HW_NUMA_ROOT",))
ROOT = 99

ties = st.lists(st.sets(st.integers(0, 3), min_size=1), min_size=1, max_size=2)
"""For each same_subtree the numbers of its groups."""

above = st.lists(st.integers(-1, 3), min_size=4, max_size=4)
"""For each provider one before it that it is below; any other number stands for the root."""


@examples(200)
@given(wanted, st.lists(st.tuples(stocks, above), min_size=1, max_size=3), ties, st.booleans(), st.booleans())
def test_what_heads_serve_is_what_can_be_composed(
    groups: list[tuple[str, int, int, bool]],
    clouds: list[tuple[list[tuple[int, int, bool]], list[int]]],
    tied: list[set[int]],
    isolate: bool,
    is_within: bool,
) -> None:
    """Several trees are asked about, for one may be taken for another that has as much below its heads."""
    suffixes = [frozenset([f"_{number % len(groups)}" for number in numbers]) for numbers in tied]
    within = (Within(groups=("_0",), level="numa"),) if is_within else ()
    request = replace(request_of(groups, isolate=isolate), same_subtree=tuple(suffixes), within=within)
    plan, composer = _composed(request)
    for providers, parents in clouds:
        tree, host = tree_of(plan, providers), _host(parents[: len(providers)])
        composed = DeviceComposer(request, plan, LEVELS, locks={}).proposals(tree, host, Budget(1_000_000))
        assert composer.serves(tree, host, Budget(1_000_000)) is bool(composed.found)


def test_heads_that_have_room_are_found_without_a_search() -> None:
    """The first provider has nothing below it that is left; the second has."""
    request = request_of([("PGPU", 1, 1, False), ("PGPU", 1, 1, False)], isolate=True)
    plan, composer = _composed(replace(request, same_subtree=(frozenset({"_0", "_1"}),)))
    tree = tree_of(plan, [(1, 0, False), (1, 0, False), (1, 0, False)])
    assert composer.serves(tree, _host([ROOT, ROOT, 1]), Budget(0)) is True


def test_after_many_trees_without_such_heads_a_search_tells() -> None:
    """The group that is tied wants two providers, so it never has the head as its only one."""
    request = request_of([("PGPU", 1, 2, False)], isolate=True)
    plan, composer = _composed(replace(request, same_subtree=(frozenset({"_0"}),)))
    tree, host = tree_of(plan, [(1, 0, False), (1, 0, False)]), _host([ROOT, 0])
    assert {composer.serves(tree, host, Budget(1000)) for _ in range(TREES_IN_VAIN + 1)} == {True}


def _composed(request: PlannerRequest) -> tuple[Plan, DeviceComposer]:
    plan = plan_for(request.plain)
    return plan, DeviceComposer(request, plan, LEVELS, locks={})


def _host(above: list[int]) -> PlannerTree:
    """Return a host whose providers, by their numbers, are below others; the first provider is a NUMA node."""
    parents = {one: over if 0 <= over < one else ROOT for one, over in enumerate(above)}
    places = {one: (0 if _is_below(one, parents) else None,) for one in parents}
    every: dict[int, int | None] = {ROOT: None, **parents}
    return PlannerTree(ROOT, every, {one: str(one) for one in every}, positions={ROOT: (None,), **places})


def _is_below(one: int, parents: dict[int, int]) -> bool:
    while one in parents and one != 0:
        one = parents[one]
    return one == 0
