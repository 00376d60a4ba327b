"""min_unit, max_unit and step_size where groups of a tree share one provider: proposals can be allocated."""

import pytest

from tests.api.conftest import Api
from tests.planner_hosts import CLAIMS, consumer, planned, provider, register, uuid_of


@pytest.fixture
def switch(levels: Api) -> Api:
    """A server on which GPUs form a level, with an empty host."""
    register(levels, numa_nodes=[[{"gpus": 0, "nics": 0}]], gpu_traits=["CUSTOM_GPU"])
    return levels


def gpu(api: Api, name: str, **rules: int) -> None:
    provider(api, name, uuid_of("host-pcie0.0"), {"VGPU": {"total": 8, **rules}}, ["CUSTOM_GPU"])


def tree(*amounts: int) -> dict:
    return {"tree": {"gpu": {str(number): {"VGPU": amount} for number, amount in enumerate(amounts)}}}


def claimed(api: Api, body: dict) -> int:
    return int(api.post(CLAIMS, {**body, "consumer": consumer()}).status_code)


def test_what_meets_on_a_provider_is_no_more_than_max_unit(switch: Api) -> None:
    gpu(switch, "gpu0", max_unit=3)
    gpu(switch, "gpu1", max_unit=3)
    (found,) = planned(switch, tree(2, 1, 2))
    assert found["gpu/0"] != found["gpu/2"]
    assert claimed(switch, tree(2, 1, 2)) == 201
    assert planned(switch, tree(2, 2, 2)) == []


@pytest.mark.parametrize(
    "rules", [{"max_unit": 2}, {"step_size": 2}, {"min_unit": 4}], ids=["max_unit", "step_size", "min_unit"]
)
def test_an_amount_goes_where_it_keeps_the_rules(switch: Api, rules: dict[str, int]) -> None:
    gpu(switch, "gpu0", **rules)
    gpu(switch, "gpu1")
    assert planned(switch, tree(3)) == [{"gpu/0": ["gpu1"]}]
    assert claimed(switch, tree(3)) == 201
