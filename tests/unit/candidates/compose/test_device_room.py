"""What a tree has too little of, compared with trying every assignment of its providers."""

from collections import Counter
from itertools import combinations, product

from hypothesis import given
from hypothesis import strategies as st

from placement.candidates.compose.devices import DeviceComposer
from placement.domain.candidate_request import RequestGroup
from placement.domain.places import Levels
from placement.domain.planner_request import PlannerGroup, PlannerRequest
from placement.domain.search_plan import Plan, plan_for
from placement.domain.tree import Tree
from tests.examples import examples

CLASSES = ("PGPU", "VCPU")

wanted = st.lists(
    st.tuples(st.sampled_from(CLASSES), st.integers(1, 3), st.integers(1, 2), st.booleans()), min_size=1, max_size=4
)
"""For each group its class, the amount, the count, and whether it wants a trait."""

stocks = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.booleans()), min_size=1, max_size=4)
"""For each provider what is left of each class, and whether it has the trait."""


def request_of(groups: list[tuple[str, int, int, bool]], *, isolate: bool) -> PlannerRequest:
    return PlannerRequest(
        groups=tuple(
            [
                PlannerGroup(
                    group=RequestGroup(
                        suffix=f"_{number}",
                        resources={name: amount},
                        required=(frozenset({"CUSTOM_A"}),) if is_picky else (),
                    ),
                    count=count,
                )
                for number, (name, amount, count, is_picky) in enumerate(groups)
            ]
        ),
        isolate=isolate,
    )


def tree_of(plan: Plan, providers: list[tuple[int, int, bool]]) -> Tree:
    left = {(id_, name): amounts[at] for id_, amounts in enumerate(providers) for at, name in enumerate(CLASSES)}
    options = [
        [
            id_
            for id_, (_pgpu, _vcpu, has_trait) in enumerate(providers)
            if all(left[id_, name] >= amount for name, amount in demand.resources)
            and (has_trait or not demand.group.required)
        ]
        for demand in plan.demands
    ]
    return Tree(0, options, {key: amount for key, amount in left.items() if key[1] in plan.contended})


def can_be_served(request: PlannerRequest, plan: Plan, tree: Tree) -> bool:
    """Try for each group every set of different providers."""
    slots = {slot.suffix: slot for slot in plan.slots}
    rows = [combinations(tree.options[slots[one.suffix].demand], one.count) for one in request.groups]
    for chosen in product(*rows):
        taken: Counter[tuple[int, str]] = Counter()
        for one, providers in zip(request.groups, chosen, strict=True):
            taken.update({(provider, name): n for provider in providers for name, n in one.group.resources.items()})
        served = [provider for providers in chosen for provider in providers]
        is_apart = not request.isolate or len(set(served)) == len(served)
        if is_apart and all(amount <= tree.room.get(key, amount) for key, amount in taken.items()):
            return True
    return False


def composer_of(request: PlannerRequest, plan: Plan) -> DeviceComposer:
    return DeviceComposer(request, plan, Levels((), ()), locks={})


@examples(150)
@given(wanted, stocks, st.booleans())
def test_a_tree_that_can_serve_all_groups_never_lacks_room(
    groups: list[tuple[str, int, int, bool]], providers: list[tuple[int, int, bool]], isolate: bool
) -> None:
    request = request_of(groups, isolate=isolate)
    plan = plan_for(request.plain)
    tree = tree_of(plan, providers)
    if can_be_served(request, plan, tree):
        assert not composer_of(request, plan).lacks_room(tree)


def test_portions_that_fit_one_by_one_and_not_together() -> None:
    """Two of 3 do not fit into 5 and 2, though they are 6 of 7; isolated groups do not share what has room for both."""
    for isolate, providers in ((False, [(5, 0, False), (2, 0, False)]), (True, [(5, 0, False), (0, 5, False)])):
        request = request_of([("PGPU", 3, 1, False), ("PGPU", 2 + (not isolate), 1, False)], isolate=isolate)
        plan = plan_for(request.plain)
        assert composer_of(request, plan).lacks_room(tree_of(plan, providers))
