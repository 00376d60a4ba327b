"""Providers: their life cycle and their position in trees. test_provider_lists.py covers lists of them."""

from typing import Any
from uuid import UUID

from werkzeug.test import TestResponse

from tests.api.conftest import Api
from tests.claims import ask, claimed, detail_of, generation, make_provider, new_uuid

NOBODY = "11111111-2222-3333-4444-555555555555"


def make(api: Api, name: str, parent: str | None = None) -> str:
    """Create a provider with a name, below a parent."""
    identity = new_uuid()
    ask(api, "POST", "/resource_providers", body={"name": name, "uuid": identity, "parent_provider_uuid": parent})
    return identity


def put(api: Api, provider: str, body: dict[str, Any], version: str = "1.39") -> TestResponse:
    return api.put(f"/resource_providers/{provider}", body, version=version)


def place(api: Api, provider: str) -> tuple[str | None, str]:
    """Return the parent and the root of a provider."""
    found = ask(api, "GET", f"/resource_providers/{provider}")
    return found["parent_provider_uuid"], found["root_provider_uuid"]


def error(answer: TestResponse) -> tuple[int, str, str]:
    """Return status, code and the last line of the detail, which is all that the openstack command shows."""
    (found,) = answer.get_json()["errors"]
    return answer.status_code, found["code"], found["detail"].splitlines()[-1]


def test_a_uuid_without_dashes_gets_them(api: Api) -> None:
    made = ask(api, "POST", "/resource_providers", body={"name": "a", "uuid": UUID(NOBODY).hex.upper()})
    assert made["uuid"] == NOBODY


REFUSED = [
    ("1.39", {}, "'name' is a required property"),
    ("1.39", {"name": 1}, "1 is not of type 'string'"),
    ("1.39", {"name": "n" * 201}, "Failed validating 'maxLength'"),
    ("1.39", {"name": "a\0b"}, "contains a NUL character"),
    ("1.39", {"name": ""}, "name is required"),
    ("1.39", {"name": "a", "uuid": "pony"}, "'pony' is not a 'uuid'"),
    ("1.39", {"name": "a", "uuid": None}, "None is not of type 'string'"),
    ("1.39", {"name": "a", "generation": 1}, "'generation' was unexpected"),
    ("1.13", {"name": "a", "parent_provider_uuid": NOBODY}, "'parent_provider_uuid' was unexpected"),
    ("1.14", {"name": "a", "parent_provider_uuid": NOBODY}, "parent provider UUID does not exist"),
    ("1.14", {"name": "a", "uuid": NOBODY, "parent_provider_uuid": NOBODY}, "cannot be same as UUID"),
    ("1.39", [], "[] is not of type 'object'"),
]


def test_bad_providers_are_refused(api: Api) -> None:
    for version, body, sentence in REFUSED:
        assert sentence in detail_of(api.post("/resource_providers", body, version=version))
    assert ask(api, "GET", "/resource_providers") == {"resource_providers": []}


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


def test_an_unknown_provider_is_not_found(api: Api) -> None:
    for path in (NOBODY, "pony", "%00", "x" * 3000):
        for method in ("GET", "DELETE"):
            assert api.request(method, f"/resource_providers/{path}").status_code == 404
        assert put(api, path, {"name": "a"}).status_code == 404


def test_an_unknown_provider_is_found_missing_before_the_body_is_found_bad(api: Api) -> None:
    assert put(api, NOBODY, {"pony": 1}).status_code == 404
    assert put(api, make(api, "a"), {"pony": 1}).status_code == 400


def test_providers_are_found_by_their_very_uuid(api: Api) -> None:
    provider = make(api, "a")
    assert api.get(f"/resource_providers/{UUID(provider).hex}").status_code == 404


def test_a_root_moves_with_all_below_it(api: Api) -> None:
    top, lone = make(api, "top"), make(api, "lone")
    child = make(api, "child", lone)
    grandchild = make(api, "grandchild", child)
    assert put(api, lone, {"name": "lone", "parent_provider_uuid": top}, "1.14").status_code == 200
    places = {provider: place(api, provider) for provider in (lone, child, grandchild)}
    assert places == {lone: (top, top), child: (lone, top), grandchild: (child, top)}


def test_from_1_37_a_subtree_moves_anywhere(api: Api) -> None:
    first, second = make(api, "first"), make(api, "second")
    child = make(api, "child", first)
    grandchild = make(api, "grandchild", child)
    put(api, child, {"name": "child", "parent_provider_uuid": second}, "1.37")
    assert (place(api, child), place(api, grandchild)) == ((second, second), (child, second))
    put(api, grandchild, {"name": "grandchild", "parent_provider_uuid": second}, "1.37")
    assert place(api, grandchild) == (second, second)
    put(api, child, {"name": "child", "parent_provider_uuid": None}, "1.37")
    assert (place(api, child), place(api, grandchild)) == ((None, child), (second, second))


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


def test_a_parent_and_a_provider_in_use_stay(api: Api) -> None:
    parent = make_provider(api, VCPU=4)
    child = make(api, "child", parent)
    claimed(api, {parent: {"VCPU": 1}})
    sentence = f"Unable to delete parent resource provider {parent}: It has child resource providers."
    assert error(api.delete(f"/resource_providers/{parent}")) == (
        409,
        "placement.resource_provider.cannot_delete_parent",
        sentence,
    )
    assert api.delete(f"/resource_providers/{child}").status_code == 204
    sentence = f"Unable to delete resource provider {parent}: Resource provider has allocations."
    answer = api.delete(f"/resource_providers/{parent}")
    assert error(answer) == (409, "placement.resource_provider.inuse", sentence)
    assert error(api.delete(f"/resource_providers/{child}")) == (
        404,
        "placement.undefined_code",
        f"No resource provider with uuid {child} found for delete",
    )
