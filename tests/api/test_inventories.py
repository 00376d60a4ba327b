"""The inventories of providers."""

from typing import Any

import pytest
from werkzeug.test import TestResponse

from tests.api.conftest import Api
from tests.claims import ask, claimed, generation, make_provider

NOBODY = "11111111-2222-3333-4444-555555555555"
DEFAULTS = {"reserved": 0, "min_unit": 1, "max_unit": 2147483647, "step_size": 1, "allocation_ratio": 1.0}


def path(provider: str, *below: str) -> str:
    return "/".join(("/resource_providers", provider, "inventories", *below))


def error(answer: TestResponse) -> tuple[int, str, str]:
    """Return status, code and the last line of the detail."""
    (found,) = answer.get_json()["errors"]
    return answer.status_code, found["code"], found["detail"].splitlines()[-1]


def at(api: Api, provider: str, **fields: Any) -> dict[str, Any]:
    """Return a body with the provider's current generation."""
    return {"resource_provider_generation": generation(api, provider), **fields}


def test_what_is_left_out_has_its_default(api: Api) -> None:
    provider = make_provider(api)
    answer = api.post(path(provider), {"resource_class": "VCPU", "total": 16}, version="1.0")
    assert answer.status_code == 201
    assert answer.headers["location"] == f"http://localhost{path(provider, 'VCPU')}"
    assert answer.get_json() == {"total": 16, **DEFAULTS, "resource_provider_generation": 1}
    assert ask(api, "GET", path(provider, "VCPU"), "1.0") == answer.get_json()
    assert ask(api, "GET", path(provider), "1.0") == {
        "resource_provider_generation": 1,
        "inventories": {"VCPU": {"total": 16, **DEFAULTS}},
    }


def test_a_provider_may_have_nothing(api: Api) -> None:
    provider = make_provider(api)
    assert ask(api, "GET", path(provider)) == {"resource_provider_generation": 0, "inventories": {}}
    assert error(api.get(path(provider, "VCPU")))[2] == f"No inventory of class VCPU for {provider}"
    assert api.get(path(provider, "PONY")).status_code == 404


def test_replacing_makes_changes_and_removes(api: Api) -> None:
    ask(api, "PUT", "/resource_classes/CUSTOM_GOLD")
    provider = make_provider(api, VCPU=16, DISK_GB=100)
    wanted = {
        "VCPU": {"total": 32, **DEFAULTS, "allocation_ratio": 16.0},
        "CUSTOM_GOLD": {"total": 1, **DEFAULTS, "reserved": 1, "max_unit": 1},
    }
    answer = api.put(path(provider), at(api, provider, inventories=wanted))
    assert answer.get_json() == {"resource_provider_generation": 2, "inventories": wanted}
    assert ask(api, "GET", path(provider)) == answer.get_json()
    again = api.put(path(provider), at(api, provider, inventories=wanted))
    assert again.get_json() == {"resource_provider_generation": 3, "inventories": wanted}
    assert ask(api, "PUT", path(provider), body=at(api, provider, inventories={}))["inventories"] == {}
    assert ask(api, "GET", path(provider))["inventories"] == {}


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


def test_a_class_is_added_once(api: Api) -> None:
    provider = make_provider(api, VCPU=1)
    status, code, sentence = error(api.post(path(provider), {"resource_class": "VCPU", "total": 2}))
    assert (status, code) == (409, "placement.concurrent_update")
    assert sentence.startswith("Update conflict")
    assert generation(api, provider) == 1


def test_changing_needs_inventory_of_the_class(api: Api) -> None:
    provider = make_provider(api, VCPU=1)
    answer = api.put(path(provider, "DISK_GB"), at(api, provider, total=1))
    assert answer.status_code == 400
    assert "No inventory record with resource class" in answer.text
    answer = api.put(path(provider, "PONY"), at(api, provider, total=1))
    assert answer.status_code == 404
    assert "No such resource class PONY" in answer.text


def test_unknown_classes_are_refused(api: Api) -> None:
    provider = make_provider(api)
    answer = api.post(path(provider), {"resource_class": "CUSTOM_PONY", "total": 1})
    assert answer.status_code == 400
    assert f"Unable to create inventory for resource provider {provider}" in answer.text
    assert "No such resource class CUSTOM_PONY" in answer.text
    answer = api.put(path(provider), at(api, provider, inventories={"PONY": {"total": 1}, "VCPU": {"total": 1}}))
    assert answer.status_code == 400
    assert "Unknown resource class in inventory" in answer.text
    assert ask(api, "GET", path(provider))["inventories"] == {}


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
            assert answer.status_code == 400, fields
            assert sentence in answer.get_json()["errors"][0]["detail"]
    assert generation(api, provider) == 1


OTHER_FORMS = [
    [],
    {},
    {"inventories": {}},
    {"resource_provider_generation": 0},
    {"resource_provider_generation": "0", "inventories": {}},
    {"resource_provider_generation": 0, "inventories": []},
    {"resource_provider_generation": 0, "inventories": {"vcpu": {"total": 1}}},
    {"resource_provider_generation": 0, "inventories": {"VCPU": 1}},
    {"resource_provider_generation": 0, "inventories": {}, "pony": 1},
]


def test_bodies_of_another_form_are_refused(api: Api) -> None:
    provider = make_provider(api)
    for body in OTHER_FORMS:
        answer = api.put(path(provider), body)
        assert answer.status_code == 400, body
        assert "JSON does not validate: " in answer.text


def test_a_whole_number_may_be_written_with_a_point(api: Api) -> None:
    provider = make_provider(api, VCPU={"total": 4.0, "allocation_ratio": 2})
    assert ask(api, "GET", path(provider, "VCPU"))["total"] == 4
    assert b'"total":4,' in api.get(path(provider, "VCPU")).data
    assert b'"allocation_ratio":2.0' in api.get(path(provider, "VCPU")).data


def test_all_may_be_reserved_from_1_26(api: Api) -> None:
    provider = make_provider(api, VCPU=1)
    full = {"total": 4, "reserved": 4}
    answer = api.put(path(provider, "VCPU"), at(api, provider, **full), version="1.25")
    assert answer.status_code == 400
    assert f"Unable to update inventory for resource provider {provider}" in answer.text
    assert "The reserved value is greater than or equal to total." in answer.text
    assert api.put(path(provider, "VCPU"), at(api, provider, **full), version="1.26").status_code == 200


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


def test_inventory_may_shrink_below_what_is_used(api: Api) -> None:
    provider = make_provider(api, VCPU=10)
    claimed(api, {provider: {"VCPU": 8}})
    assert api.put(path(provider, "VCPU"), at(api, provider, total=4)).status_code == 200


def test_deleting_what_is_not_there_is_not_found(api: Api) -> None:
    provider = make_provider(api, VCPU=1)
    for name in ("DISK_GB", "PONY", "CUSTOM_PONY"):
        answer = api.delete(path(provider, name))
        assert answer.status_code == 404
        assert f"No inventory of class {name} found for delete" in answer.text
    assert generation(api, provider) == 1


def test_all_are_deleted_at_once_from_1_5(api: Api) -> None:
    provider = make_provider(api, VCPU=1, DISK_GB=1)
    answer = api.delete(path(provider), version="1.4")
    assert answer.status_code == 405
    assert "The method DELETE is not allowed for this resource." in answer.text
    answer = api.delete(path(provider), version="1.5")
    assert (answer.status_code, answer.data) == (204, b"")
    assert ask(api, "GET", path(provider))["inventories"] == {}


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


def test_answers_are_dated_from_1_15(api: Api) -> None:
    provider = make_provider(api, VCPU=1, DISK_GB=1)
    for url in (path(provider), path(provider, "VCPU")):
        assert api.get(url, version="1.14").last_modified is None
        assert api.get(url, version="1.15").last_modified is not None
        assert api.get(url, version="1.15").headers["cache-control"] == "no-cache"


@pytest.mark.any_database
def test_a_body_may_name_as_many_classes_as_the_limit_allows(api: Api) -> None:
    provider = make_provider(api)
    inventories = {f"CUSTOM_{number}": {"total": 1} for number in range(10_000)}
    answer = api.put(path(provider), at(api, provider, inventories=inventories))
    assert answer.status_code == 400
    assert "Unknown resource class in inventory" in answer.text
