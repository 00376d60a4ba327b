"""How much a request can take of a tree where it says no number of providers."""

from placement.candidates.compose.open_counts import MAX_SUMS, OpenCounts
from placement.domain.candidate_request import RequestGroup
from placement.domain.planner_request import PlannerGroup, PlannerRequest
from placement.domain.tree import Tree
from placement.services.planner.composers import plan_with_everything


def group(suffix: str, *, amount: int, **counted) -> PlannerGroup:
    return PlannerGroup(group=RequestGroup(suffix=suffix, resources={"PGPU": amount}), **counted)


def amounts(*groups: PlannerGroup, supplies: dict[str, int]) -> list[int]:
    request = PlannerRequest(groups=groups)
    plan = plan_with_everything(request)
    options = [list(range(1, 1 + supplies[one.group.suffix])) for one in plan.demands]
    return [one["PGPU"] for one in OpenCounts(request, plan).amounts_in(Tree(1, options))]


def test_what_is_counted_adds_to_as_many_as_a_tree_may_give() -> None:
    groups = [group("_A", amount=2, count=3), group("_B", amount=1, per_subtree=True)]
    assert amounts(*groups, supplies={"_A": 9, "_B": 4}) == [7, 8, 9, 10]


def test_all_that_there_are_is_one_number_but_of_devices_that_only_details_tell() -> None:
    device = RequestGroup(suffix="_A")
    assert amounts(group("_A", amount=2, everything=True), supplies={"_A": 5}) == [10]
    assert amounts(group("_A", amount=2, everything=True, device=device), supplies={"_A": 3}) == [2, 4, 6]


def test_nothing_is_said_of_more_sums_than_are_worth_it() -> None:
    assert amounts(group("_A", amount=1, per_subtree=True), supplies={"_A": MAX_SUMS + 1}) == []
