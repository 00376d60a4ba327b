"""What comparison with the reference once found; worked_examples.yaml has what the reference gets wrong."""

import uuid

import pytest
from flask import Flask

from tests.api.conftest import Api
from tests.claims import detail_of
from tests.clouds import provider
from tests.stored_clouds import stored


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
