"""Providers: their life cycle and their position in trees. test_provider_lists.py covers lists of them."""

from typing import Any
from uuid import UUID

from werkzeug.test import TestResponse

from tests.api.conftest import Api
from tests.claims import ask, claimed, generation, make_provider, new_uuid

NOBODY = "11111111-2222-3333-4444-555555555555"


def make(api: Api, name: str, parent: str | None = None) -> str:
    """Create a provider with a name, below a parent."""
    identity = new_uuid()
    ask(api, "POST", "/resource_providers", body={"name": name, "uuid": identity, "parent_provider_uuid": parent})
    return identity


def put(api: Api, provider: str, body: dict[str, Any], version: str = "1.39") -> TestResponse:
    return api.put(f"/resource_providers/{provider}", body, version=version)


def error(answer: TestResponse) -> tuple[int, str, str]:
    """Return status, code and the last line of the detail, which is all that the openstack command shows."""
    (found,) = answer.get_json()["errors"]
    return answer.status_code, found["code"], found["detail"].splitlines()[-1]


def test_a_uuid_without_dashes_gets_them(api: Api) -> None:
    made = ask(api, "POST", "/resource_providers", body={"name": "a", "uuid": UUID(NOBODY).hex.upper()})
    assert made["uuid"] == NOBODY


def test_names_may_be_of_any_script(api: Api) -> None:
    provider = make(api, "å" * 200)
    assert ask(api, "GET", f"/resource_providers/{provider}")["name"] == "å" * 200
    (found,) = ask(api, "GET", "/resource_providers?name=" + "%C3%A5" * 200)["resource_providers"]
    assert found["uuid"] == provider


def test_a_taken_name_or_uuid_is_a_conflict_that_names_it(api: Api) -> None:
    """Clients like nova take a message beginning with the name for a name conflict, and otherwise look up the uuid."""
    provider = make(api, "taken")
    code = "placement.duplicate_name"
    answers = {
        "name: taken": api.post("/resource_providers", {"name": "taken"}),
        f"uuid: {provider}": api.post("/resource_providers", {"name": "other", "uuid": provider}),
        f"uuid: {provider}, name: taken": api.post("/resource_providers", {"name": "taken", "uuid": provider}),
    }
    for clash, answer in answers.items():
        assert error(answer) == (409, code, f"Conflicting resource provider {clash} already exists.")


def test_an_unknown_provider_is_found_missing_before_the_body_is_found_bad(api: Api) -> None:
    assert put(api, NOBODY, {"pony": 1}).status_code == 404
    assert put(api, make(api, "a"), {"pony": 1}).status_code == 400


def test_providers_are_found_by_their_very_uuid(api: Api) -> None:
    provider = make(api, "a")
    assert api.get(f"/resource_providers/{UUID(provider).hex}").status_code == 404


def test_a_provider_goes_with_all_it_has(api: Api) -> None:
    provider = make_provider(api, VCPU=4)
    path = f"/resource_providers/{provider}"
    ask(api, "PUT", f"{path}/traits", body={"traits": ["HW_CPU_X86_AVX"], "resource_provider_generation": 1})
    ask(api, "PUT", f"{path}/aggregates", body={"aggregates": [NOBODY], "resource_provider_generation": 2})
    consumer = claimed(api, {provider: {"VCPU": 1}})
    ask(api, "DELETE", f"/allocations/{consumer}")
    answer = api.delete(path)
    assert (answer.status_code, answer.data) == (204, b"")
    assert api.get(path).status_code == 404
    # The next provider may get the same row id; nothing of the old one may be left for it.
    again = make(api, "again")
    assert generation(api, again) == 0
    for part, empty in {"inventories": {}, "traits": [], "aggregates": [], "usages": {}}.items():
        assert ask(api, "GET", f"/resource_providers/{again}/{part}")[part] == empty
