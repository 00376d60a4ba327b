"""Affinities that can only use one place ask the same as rules about one place."""

from random import Random

import pytest

from placement.candidates.compose.one_place import with_single_places
from placement.domain.candidate_request import RequestGroup
from placement.domain.planner_request import Affinity, PlannerGroup, PlannerRequest, Within
from tests.definition_of_plans import PlanDefinition, TooMany
from tests.planner_clouds import LEVELS, LOCKS, random_cloud, random_request

JOINT = Affinity(primary="_A", secondaries=("_B",), level="numa")
TOGETHER = Within(groups=("_A", "_B"), level="numa")


def asked(*, a: dict, b: dict, rule: Affinity = JOINT) -> PlannerRequest:
    groups = [
        PlannerGroup(group=RequestGroup(suffix=suffix, resources={"PGPU": 1}), **of)
        for suffix, of in (("_A", a), ("_B", b))
    ]
    return PlannerRequest(groups=tuple(groups), affinity=(rule,))


@pytest.mark.parametrize(
    ("request_", "is_rewritten"),
    [
        pytest.param(asked(a={"count": 3}, b={}), True, id="one secondary"),
        pytest.param(asked(a={}, b={"count": 3}), True, id="one primary"),
        pytest.param(asked(a={}, b={"everything": True}), True, id="all of the others"),
        pytest.param(asked(a={"count": 2}, b={"count": 2}), False, id="two places will do"),
        pytest.param(asked(a={"count": 2}, b={"everything": True}), False, id="all of them, wherever they are"),
        pytest.param(asked(a={}, b={"per_subtree": True}), True, id="one for each place"),
        pytest.param(asked(a={"count": 2}, b={"per_subtree": True}), False, id="how many depends on the places"),
        pytest.param(
            asked(a={}, b={}, rule=Affinity(primary="_A", secondaries=("_B",), level="numa", required=False)),
            False,
            id="only preferred",
        ),
    ],
)
def test_a_single_provider_makes_it_one_place(request_: PlannerRequest, is_rewritten: bool) -> None:
    found = with_single_places(request_)
    assert (found.within, found.affinity) == (((TOGETHER,), ()) if is_rewritten else ((), request_.affinity))
    assert asks_for_each_place(found) == (asks_for_each_place(request_) and not is_rewritten)


def asks_for_each_place(request: PlannerRequest) -> bool:
    return any(one.per_subtree for one in request.groups)


def test_trying_everything_finds_the_same() -> None:
    compared = of_each_place = 0
    for seed in range(600):
        chance = Random(seed)
        cloud, request = random_cloud(chance), random_request(chance)
        single = with_single_places(request)
        if single == request:
            continue
        try:
            for root in [node.id for node in cloud.values() if node.parent is None]:
                ours, other = [PlanDefinition(one, cloud, levels=LEVELS, locks=LOCKS) for one in (request, single)]
                assert ours.best(root) == other.best(root), seed
        except TooMany:
            continue
        compared += 1
        of_each_place += asks_for_each_place(request)
    assert compared > 20
    assert of_each_place > 5
