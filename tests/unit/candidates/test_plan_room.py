"""Trees told by their room, without a search: the same as a search finds, and far more of them with as many steps."""

from dataclasses import replace
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from placement.candidates.budget import RequestBudget
from placement.candidates.compose.slots import SlotComposer
from placement.candidates.explain.explain import explain
from placement.candidates.explain.plan_room import PlanRoom
from placement.domain.candidate_request import CandidateRequest, RequestGroup
from placement.domain.facts import EqualStocks, Facts
from placement.domain.search_plan import plan_for
from tests.examples import examples
from tests.unit.candidates.compose.test_device_room import request_of, stocks, tree_of, wanted


@examples(150)
@given(wanted, st.lists(stocks, min_size=1, max_size=4), st.booleans())
def test_there_is_room_where_a_search_finds_a_candidate(
    groups: list[tuple[str, int, int, bool]], clouds: list[list[tuple[int, int, bool]]], isolate: bool
) -> None:
    plan = plan_for(request_of(groups, isolate=isolate).plain)
    room, composer = PlanRoom(plan), SlotComposer(plan, RequestBudget())
    for providers in clouds:
        tree = tree_of(plan, providers)
        if not all(tree.options):
            continue
        is_served = next(composer.searched(tree), None) is not None
        assert not (is_served and room.is_lacking(tree))
        assert room.decides
        assert room.suffices(tree, RequestBudget()) == is_served


def test_room_decides_only_where_no_rule_says_what_lies_where() -> None:
    groups = tuple([RequestGroup(suffix=suffix, resources={"VCPU": 1}) for suffix in ("_A", "_B")])
    request = CandidateRequest(groups=groups)
    assert PlanRoom(plan_for(request)).decides
    assert not PlanRoom(plan_for(replace(request, combines_nested=False))).decides
    assert not PlanRoom(plan_for(replace(request, same_subtree=(frozenset({"_A", "_B"}),)))).decides


def test_few_steps_are_enough_to_explain_sixteen_groups() -> None:
    """To search each of these hosts would take 40 steps for a group, which is more than there are."""
    chance, hosts, nodes = Random(0), 1_800, 4
    groups = tuple([RequestGroup(suffix=f"_{one}", resources={"VCPU": 1 + one % 4}) for one in range(16)])
    root_of = {node: node // nodes for node in range(hosts * nodes)}
    # Hardly two hosts have the same left, though each has enough.
    stocks = [EqualStocks(float(chance.randint(16, 39)), 1, 40, 1, [node]) for node in root_of]
    explanation = explain(plan_for(CandidateRequest(groups=groups)), Facts(stocks={"VCPU": stocks}, root_of=root_of))
    assert (explanation.complete, explanation.found) == (True, hosts)
