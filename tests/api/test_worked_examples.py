"""The guide's worked examples, and some that the reference gets wrong, have exactly the candidates listed for them."""

import re
from typing import Any

import pytest

from tests.api.conftest import Api
from tests.api.worked_examples import DEFECTS, EXAMPLES, REFUSED, Candidate, Example
from tests.clouds import Cloud
from tests.stored_clouds import stored

EACH = [*[pytest.param(example, marks=pytest.mark.any_database) for example in EXAMPLES], *DEFECTS]


@pytest.mark.parametrize("example", EACH, ids=lambda example: example.says)
def test_a_query_has_exactly_the_candidates_that_are_listed(api: Api, example: Example) -> None:
    cloud = stored(api.app, *example.cloud)
    found = [_candidate(cloud, request) for request in _allocation_requests(api, cloud, example.query)]
    assert sorted(map(_sorted, found)) == sorted(map(_sorted, example.candidates))


@pytest.mark.any_database
@pytest.mark.parametrize("example", REFUSED, ids=lambda example: example.says)
def test_a_query_the_guide_rules_out_is_refused(api: Api, example: Example) -> None:
    cloud = stored(api.app, *example.cloud)
    assert api("GET", _url(cloud, example.query), "1.39")[0] == 400


@pytest.mark.any_database
def test_the_provider_of_a_group_without_resources_stands_in_the_mappings_only(api: Api) -> None:
    """E-18: NUMA1 ties the two FPGAs together, and nothing is allocated from it."""
    example = EXAMPLES[-1]
    cloud = stored(api.app, *example.cloud)
    (request,) = _allocation_requests(api, cloud, example.query)
    assert request["mappings"] == {
        "_NUMA": [cloud.providers["NUMA1"]],
        "_ACCEL1": [cloud.providers["FPGA1_0"]],
        "_ACCEL2": [cloud.providers["FPGA1_1"]],
    }
    assert cloud.providers["NUMA1"] not in request["allocations"]


def _allocation_requests(api: Api, cloud: Cloud, query: str) -> list[Any]:
    status, document = api("GET", _url(cloud, query), "1.39")
    assert status == 200, document
    found: list[Any] = document["allocation_requests"]
    return found


def _url(cloud: Cloud, query: str) -> str:
    known = {**cloud.aggregates, **cloud.providers}
    return "/allocation_candidates?" + re.sub("<(.+?)>", lambda name: known[name[1]], query)


def _candidate(cloud: Cloud, request: Any) -> Candidate:
    return {
        cloud.name_of(identity): ",".join(f"{name}:{amount}" for name, amount in part["resources"].items())
        for identity, part in request["allocations"].items()
    }


def _sorted(candidate: Candidate) -> list[tuple[str, list[str]]]:
    return sorted((name, sorted(resources.split(","))) for name, resources in candidate.items())
