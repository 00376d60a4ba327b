"""What the reference gets wrong and this server does right, and what comparison with it once found."""

import uuid

import pytest
from flask import Flask

from tests.api.conftest import Api
from tests.claims import detail_of
from tests.clouds import SHARES, provider
from tests.stored_clouds import stored


@pytest.fixture
def make(api):
    return lambda *roots: stored(api.app, *roots)


def candidates(api, query: str, **options) -> list[dict]:
    response = api.get(f"/allocation_candidates?{query}", **options)
    assert response.status_code == 200
    return response.get_json()["allocation_requests"]


def test_a_forbidden_trait_in_the_unsuffixed_group_is_served(api, make):
    """On PostgreSQL the reference compares names with ids and answers 500 if trees exist."""
    cloud = make(
        provider("host", provider("fast", VCPU=8, traits=["STORAGE_DISK_SSD"]), provider("slow", VCPU=8), DISK_GB=10)
    )
    found = candidates(api, "resources=VCPU:1,DISK_GB:1&required=!STORAGE_DISK_SSD")
    assert [set(each["allocations"]) for each in found] == [{cloud.providers["host"], cloud.providers["slow"]}]


def test_amounts_do_not_leak_between_candidates(api, make):
    """Without group_policy=none the reference adds amounts of other candidates: 5 was returned as 11."""
    make(provider("host", *(provider(f"numa{i}", VCPU=8) for i in range(3))))
    found = candidates(api, "resources=VCPU:2&resources_A=VCPU:3")
    totals = {sum(share["resources"]["VCPU"] for share in each["allocations"].values()) for each in found}
    assert totals == {5}
    assert len(found) == 9


def test_a_sharing_provider_need_not_be_a_root(api, make):
    """The reference answers 500 if another tree is served by a child of a tree that is not involved."""
    cloud = make(
        provider("host", VCPU=8, aggregates=["A"]),
        provider("array", provider("pool", DISK_GB=100, traits=[SHARES], aggregates=["A"])),
    )
    (found,) = candidates(api, "resources=VCPU:1,DISK_GB:10")
    assert set(found["allocations"]) == {cloud.providers["host"], cloud.providers["pool"]}


def test_one_sharing_provider_serves_the_unsuffixed_group_of_every_tree(api, make):
    """The reference treats the equal parts of two trees as one and combines them with other groups in one tree only."""
    cloud = make(
        provider("host1", VCPU=8, aggregates=["A"]),
        provider("host2", VCPU=8, aggregates=["A"]),
        provider("pool", DISK_GB=100, traits=[SHARES], aggregates=["A"]),
    )
    found = candidates(api, "resources=DISK_GB:10&resources_C=VCPU:1")
    pool = cloud.providers["pool"]
    assert {frozenset(each["allocations"]) for each in found} == {
        frozenset({pool, cloud.providers[host]}) for host in ("host1", "host2")
    }


@pytest.mark.parametrize("group", ["", "é"])
@pytest.mark.parametrize("providers", [[], None, "x"])
def test_mappings_of_a_group_without_a_suffix_are_not_looked_at(api: Api, group: str, providers: object) -> None:
    body = {
        "allocations": {str(uuid.uuid4()): {"resources": {"VCPU": 1}}},
        "consumer_generation": None,
        "project_id": "project",
        "user_id": "user",
        "mappings": {group: providers},
    }
    answer = api.put(f"/allocations/{uuid.uuid4()}", body, version="1.34")
    # Everything else about the request was examined.
    assert "that does not exist" in detail_of(answer)


@pytest.mark.any_database
@pytest.mark.parametrize("number", [62, 64, 130])
def test_traits_of_a_group_may_be_as_many_as_fit_into_a_query(api: Api, number: int) -> None:
    """An unsuffixed group may find each of them on another provider."""
    traits = [f"CUSTOM_T{index}" for index in range(number)]
    half = number // 2
    stored(
        api.app, provider("host", provider("child", MEMORY_MB=64, traits=traits[half:]), VCPU=8, traits=traits[:half])
    )
    path = "/allocation_candidates?resources=VCPU:1,MEMORY_MB:1&required="
    assert len(api.get(path + ",".join(traits)).json["allocation_requests"]) == 1
    lacking = api.get(path + ",".join([*traits, "HW_NUMA_ROOT"])).json
    assert lacking["allocation_requests"] == []


@pytest.mark.parametrize("path", ["//", "///", "//resource_providers"])
def test_a_path_that_begins_with_several_slashes_leads_nowhere(app: Flask, path: str) -> None:
    """No client of Flask's would send it as a path."""
    headers = {"x-auth-token": "admin", "openstack-api-version": "placement 1.39"}
    answer = app.test_client().get("/", environ_overrides={"PATH_INFO": path}, headers=headers)
    assert detail_of(answer, 404).startswith("The resource could not be found.")
