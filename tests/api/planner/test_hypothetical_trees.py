"""POST /planner/v1/candidates with hypothetical trees, to evaluate them."""

import pytest

from tests.api.conftest import Api
from tests.api.planner.test_headroom import UNKNOWN, gpu_host
from tests.claims import detail_of
from tests.clouds import Cloud, allocate
from tests.planner_hosts import CANDIDATES
from tests.stored_clouds import stored

PAIR = {"groups": {"": {"resources": {"VCPU": 2}}, "_G": {"resources": {"PGPU": 1}, "count": 2}}}


def hosts(api: Api) -> Cloud:
    """Two hosts: one is full, the other has a single GPU left."""
    cloud = stored(api.app, gpu_host("full"), gpu_host("busy"))
    gpus = [("full", f"{node}{gpu}") for node in range(2) for gpu in range(2)] + [
        ("busy", n) for n in ("00", "01", "10")
    ]
    for name, number in gpus:
        allocate(api.call, cloud.providers[f"{name}-gpu{number}"], {"PGPU": 1})
    return cloud


def candidates(api: Api, **more: object):
    return api.post(CANDIDATES, {**PAIR, **more}).json


def test_hypothetical_trees_are_candidates_as_often_as_there_are_some(api: Api) -> None:
    cloud = hosts(api)
    assert candidates(api)["allocation_requests"] == []
    full = cloud.providers["full"]
    found = candidates(api, **{"with": [{"like": full, "count": 3}]})
    assert [one["like"] for one in found["scores"]] == [full] * 3
    assert len(found["allocation_requests"]) == 3
    gpus = {cloud.providers[f"full-gpu{node}{gpu}"] for node in range(2) for gpu in range(2)}
    assert all(gpus.issuperset(one["mappings"]["_G"]) for one in found["allocation_requests"])
    assert gpus <= found["provider_summaries"].keys()
    assert candidates(api)["allocation_requests"] == []


def test_a_tree_that_is_gone_may_be_there_again_and_empty(api: Api) -> None:
    cloud = hosts(api)
    busy = cloud.providers["busy"]
    found = candidates(api, without=[busy], released=[], limit=1, **{"with": [{"like": busy, "count": 16}]})
    assert [one["like"] for one in found["scores"]] == [busy]


@pytest.mark.parametrize("count", [0, 1001])
def test_so_many_cannot_be_supposed(api: Api, count: int) -> None:
    assert api.post(CANDIDATES, {**PAIR, "with": [{"like": UNKNOWN, "count": count}]}).status_code == 400


def test_like_nothing_there_are_none(api: Api) -> None:
    answer = api.post(CANDIDATES, {**PAIR, "with": [{"like": UNKNOWN, "count": 1}]})
    assert "with[0].like: There is no provider" in detail_of(answer)
