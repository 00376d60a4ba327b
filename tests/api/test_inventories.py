"""The inventories of providers."""

from typing import Any

import pytest
from werkzeug.test import TestResponse

from tests.api.conftest import Api
from tests.claims import ask, claimed, detail_of, generation, make_provider

NOBODY = "11111111-2222-3333-4444-555555555555"


def path(provider: str, *below: str) -> str:
    return "/".join(("/resource_providers", provider, "inventories", *below))


def error(answer: TestResponse) -> tuple[int, str, str]:
    """Return status, code and the last line of the detail."""
    (found,) = answer.get_json()["errors"]
    return answer.status_code, found["code"], found["detail"].splitlines()[-1]


def at(api: Api, provider: str, **fields: Any) -> dict[str, Any]:
    """Return a body with the provider's current generation."""
    return {"resource_provider_generation": generation(api, provider), **fields}


def test_every_successful_write_moves_the_generation_on_by_one(api: Api) -> None:
    provider = make_provider(api)
    ask(api, "POST", path(provider), body={"resource_class": "VCPU", "total": 1})
    ask(api, "PUT", path(provider, "VCPU"), body=at(api, provider, total=1))
    ask(api, "PUT", path(provider), body=at(api, provider, inventories={"VCPU": {"total": 1}}))
    assert generation(api, provider) == 3
    ask(api, "DELETE", path(provider, "VCPU"))
    ask(api, "DELETE", path(provider))
    assert generation(api, provider) == 5


def test_a_stale_generation_is_a_conflict(api: Api) -> None:
    provider = make_provider(api, VCPU=1)
    bodies = {path(provider): {"inventories": {}}, path(provider, "VCPU"): {"total": 5}}
    for url, body in bodies.items():
        for stale in (0, 2, -1, 2**31, 2**63 - 1):
            answer = api.put(url, {"resource_provider_generation": stale, **body})
            assert error(answer) == (409, "placement.concurrent_update", "resource provider generation conflict")
    assert ask(api, "GET", path(provider, "VCPU"))["total"] == 1


def test_adding_does_not_look_at_the_generation(api: Api) -> None:
    provider = make_provider(api, VCPU=1)
    body = {"resource_class": "DISK_GB", "total": 1, "resource_provider_generation": 77}
    assert api.post(path(provider), body).get_json()["resource_provider_generation"] == 2


FAULTS = [
    ({}, "'total' is a required property"),
    ({"total": 0}, "0 is less than the minimum of 1"),
    ({"total": 2147483648}, "2147483648 is greater than the maximum of 2147483647"),
    ({"total": 10**20}, "Failed validating"),
    ({"total": True}, "True is not of type 'integer'"),
    ({"total": "1"}, "'1' is not of type 'integer'"),
    ({"total": 1.5}, "1.5 is not of type 'integer'"),
    ({"total": None}, "None is not of type 'integer'"),
    ({"total": 1, "reserved": -1}, "-1 is less than the minimum of 0"),
    ({"total": 1, "min_unit": 0}, "0 is less than the minimum of 1"),
    ({"total": 1, "max_unit": 0}, "0 is less than the minimum of 1"),
    ({"total": 1, "step_size": 0}, "0 is less than the minimum of 1"),
    ({"total": 1, "allocation_ratio": "1"}, "'1' is not of type 'number'"),
    ({"total": 1, "allocation_ratio": 3.5e38}, "is greater than the maximum of 3.40282e+38"),
    ({"total": 1, "allocation_ratio": -1}, "The reserved value is greater than total"),
    ({"total": 1, "reserved": 2}, "The reserved value is greater than total"),
    ({"total": 1, "pony": 1}, "'pony' was unexpected"),
]


def test_bad_inventories_are_refused(api: Api) -> None:
    provider = make_provider(api, DISK_GB=1)
    for fields, sentence in FAULTS:
        answers = [
            api.post(path(provider), {"resource_class": "VCPU", **fields}),
            api.put(path(provider, "DISK_GB"), at(api, provider, **fields)),
            api.put(path(provider), at(api, provider, inventories={"VCPU": fields})),
        ]
        for answer in answers:
            assert sentence in detail_of(answer)
    assert generation(api, provider) == 1


def test_a_whole_number_may_be_written_with_a_point(api: Api) -> None:
    provider = make_provider(api, VCPU={"total": 4.0, "allocation_ratio": 2})
    assert ask(api, "GET", path(provider, "VCPU"))["total"] == 4
    assert b'"total":4,' in api.get(path(provider, "VCPU")).data
    assert b'"allocation_ratio":2.0' in api.get(path(provider, "VCPU")).data


def test_inventory_in_use_stays(api: Api) -> None:
    provider = make_provider(api, DISK_GB=100, MEMORY_MB=100, VCPU=10)
    claimed(api, {provider: {"DISK_GB": 1, "VCPU": 1}})
    sentence = f"Inventory for 'VCPU, DISK_GB' on resource provider '{provider}' in use."
    answer = api.delete(path(provider))
    assert error(answer) == (409, "placement.inventory.inuse", sentence)
    answer = api.put(path(provider), at(api, provider, inventories={"MEMORY_MB": {"total": 1}}))
    assert error(answer) == (409, "placement.inventory.inuse", f"update conflict: {sentence}")
    status, code, sentence = error(api.delete(path(provider, "VCPU")))
    assert (status, code) == (409, "placement.concurrent_update")
    assert f"Inventory for 'VCPU' on resource provider '{provider}' in use." in sentence
    assert set(ask(api, "GET", path(provider))["inventories"]) == {"VCPU", "MEMORY_MB", "DISK_GB"}
    assert api.delete(path(provider, "MEMORY_MB")).status_code == 204


def test_an_unknown_provider_is_not_found_whatever_is_asked(api: Api) -> None:
    requests = [
        ("GET", path(NOBODY), None),
        ("GET", path(NOBODY, "VCPU"), None),
        ("DELETE", path(NOBODY), None),
        ("DELETE", path(NOBODY, "VCPU"), None),
        ("POST", path(NOBODY), {"resource_class": "VCPU", "total": 1}),
        ("POST", path(NOBODY), {"pony": 1}),
        ("PUT", path(NOBODY), {"resource_provider_generation": 0, "inventories": {}}),
        ("PUT", path(NOBODY), {"pony": 1}),
        ("PUT", path(NOBODY, "VCPU"), {"resource_provider_generation": 0, "total": 1}),
    ]
    for method, url, body in requests:
        answer = api.request(method, url, **({} if body is None else {"json": body}))
        assert answer.status_code == 404, (method, url, body)
        assert f"No resource provider with uuid {NOBODY} found" in answer.text


@pytest.mark.any_database
def test_a_body_may_name_as_many_classes_as_the_limit_allows(api: Api) -> None:
    provider = make_provider(api)
    inventories = {f"CUSTOM_{number}": {"total": 1} for number in range(10_000)}
    answer = api.put(path(provider), at(api, provider, inventories=inventories))
    assert answer.status_code == 400
    assert "Unknown resource class in inventory" in answer.text
