"""Whether trees have room for groups that must share a place, compared with trying every assignment of providers."""

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from placement.allocators.budget import Budget
from placement.candidates.compose.devices import DeviceComposer
from placement.domain.candidate_request import RequestGroup
from placement.domain.places import Levels
from placement.domain.planner_request import PlannerGroup, PlannerRequest, Within
from placement.domain.planner_tree import PlannerTree
from placement.domain.search_plan import plan_for
from placement.domain.tree import Tree
from tests.examples import examples
from tests.unit.candidates.compose.test_device_room import can_be_served, request_of, stocks, tree_of, wanted

LEVELS = Levels(("numa", "pcie"), ("HW_NUMA_ROOT", "CUSTOM_PCIE"))

rules = st.lists(
    st.tuples(st.sampled_from(LEVELS.names), st.sets(st.integers(0, 3), min_size=1), st.booleans()), min_size=1
)
"""For each rule the level, the numbers of the groups, and whether it must not be broken."""

places = st.lists(
    st.tuples(st.sampled_from((None, 10, 11)), st.sampled_from((None, 20, 21, 22))), min_size=4, max_size=4
)
"""For each provider its places."""


@examples(200)
@given(wanted, st.lists(st.tuples(stocks, places), min_size=1, max_size=3), rules, st.booleans())
def test_what_has_room_in_one_place_is_what_sharing_out_finds(
    groups: list[tuple[str, int, int, bool]],
    clouds: list[tuple[list[tuple[int, int, bool]], list[tuple[int | None, int | None]]]],
    within: list[tuple[str, set[int], bool]],
    isolate: bool,
) -> None:
    """Several trees are asked about, because one may be taken for another with as much in a place."""
    plain = request_of(groups, isolate=isolate)
    tied = [
        Within(groups=tuple([f"_{number % len(groups)}" for number in sorted(numbers)]), level=level, required=required)
        for level, numbers, required in within
    ]
    request = replace(plain, within=tuple(tied))
    plan = plan_for(request.plain)
    composer = DeviceComposer(request, plan, LEVELS, locks={})
    ruled = replace(request, within=tuple([rule for rule in tied if rule.required]))
    for providers, positions in clouds:
        tree = tree_of(plan, providers)
        of_levels = dict(zip(LEVELS.names, zip(*positions, strict=True), strict=True))
        found = composer.serves(tree, _host(positions), Budget(1_000_000))
        assert found == can_be_served(ruled, plan, tree, places=of_levels)


def test_virtual_functions_in_one_place_are_of_several_cards() -> None:
    """A place with enough functions, all of one card, does not serve."""
    group = PlannerGroup(group=RequestGroup(suffix="_V", resources={"VF": 1}), count=2, device=RequestGroup(suffix=""))
    request = PlannerRequest(groups=(group,), within=(Within(groups=("_V",), level="numa"),))
    composer = DeviceComposer(request, plan_for(request.plain), LEVELS, locks={})
    for cards, serves in (((1, 1, 2), False), ((1, 2, 2), True)):
        details = _host([(10, None), (10, None), (11, None)], dict(enumerate(cards)))
        assert composer.serves(Tree(99, [[0, 1, 2]]), details, Budget(1000)) is serves


def test_without_steps_it_is_not_told_that_no_place_serves() -> None:
    """The second rule may find a place beside that of the first."""
    groups = request_of([("PGPU", 2, 1, False), ("PGPU", 2, 1, False)], isolate=False)
    ties = tuple([Within(groups=(one.suffix,), level="numa") for one in groups.groups])
    plan = plan_for(groups.plain)
    composer = DeviceComposer(replace(groups, within=ties), plan, LEVELS, locks={})
    details = _host([(10, None), (11, None)])
    assert [
        composer.serves(tree_of(plan, [(left, 0, False), (3, 0, False)]), details, Budget(steps))
        for left, steps in ((0, 0), (0, 1000), (2, 1000))
    ] == [None, False, True]


def _host(places: Sequence[tuple[int | None, ...]], cards: dict[int, int] | None = None) -> PlannerTree:
    """Return a host whose providers, by their numbers, lie in places, and are of cards."""
    parents = {99: None, **dict.fromkeys(range(len(places)), 99), **(cards or {})}
    names = {one: str(one) for one in parents}
    return PlannerTree(99, parents, names, positions=dict(enumerate(places)))
