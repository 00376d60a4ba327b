"""The inventories of providers."""

from typing import Any

import pytest
from werkzeug.test import TestResponse

from tests.api.conftest import Api
from tests.claims import ask, claimed, generation, make_provider

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


@pytest.mark.any_database
def test_a_body_may_name_as_many_classes_as_the_limit_allows(api: Api) -> None:
    provider = make_provider(api)
    inventories = {f"CUSTOM_{number}": {"total": 1} for number in range(10_000)}
    answer = api.put(path(provider), at(api, provider, inventories=inventories))
    assert answer.status_code == 400
    assert "Unknown resource class in inventory" in answer.text
