"""Allocations of consumers: writing, reading, and refusals."""

from typing import Any

import pytest

from tests.api.conftest import Api
from tests.claims import (
    OWNER,
    ask,
    claimed,
    consumer_generation,
    entry,
    generation,
    held,
    listed_entry,
    make_provider,
    new_uuid,
    old_entry,
    set_inventories,
    used,
)

NOBODY = "11111111-2222-3333-4444-555555555555"


def error_of(answer: Any) -> dict[str, Any]:
    (error,) = answer.get_json()["errors"]
    found: dict[str, Any] = error
    return found


@pytest.mark.parametrize("version", ["1.0", "1.11", "1.12", "1.28", "1.38"])
@pytest.mark.parametrize("consumer", [NOBODY, "no-uuid-at-all"])
def test_a_consumer_that_holds_nothing_is_an_empty_answer(api: Api, consumer: str, version: str) -> None:
    assert ask(api, "GET", f"/allocations/{consumer}", version) == {"allocations": {}}


def test_an_answer_shows_what_its_version_knows(api: Api) -> None:
    one, other = make_provider(api, VCPU=8, MEMORY_MB=512), make_provider(api, DISK_GB=10)
    consumer = claimed(api, {one: {"VCPU": 2, "MEMORY_MB": 256}, other: {"DISK_GB": 5}})
    shown = {
        "allocations": {
            one: {"generation": 2, "resources": {"VCPU": 2, "MEMORY_MB": 256}},
            other: {"generation": 2, "resources": {"DISK_GB": 5}},
        }
    }
    owned = {**shown, "project_id": "project", "user_id": "user"}
    counted = {**owned, "consumer_generation": 1}
    typed = {**counted, "consumer_type": "INSTANCE"}
    expected = {
        "1.0": shown,
        "1.11": shown,
        "1.12": owned,
        "1.27": owned,
        "1.28": counted,
        "1.37": counted,
        "1.38": typed,
    }
    path = f"/allocations/{consumer}"
    assert {version: ask(api, "GET", path, version) for version in expected} == expected


def test_the_allocations_of_a_provider_are_listed_by_consumer(api: Api) -> None:
    provider = make_provider(api, VCPU=8, MEMORY_MB=512)
    one, other = claimed(api, {provider: {"VCPU": 1, "MEMORY_MB": 2}}), claimed(api, {provider: {"VCPU": 3}})
    path = f"/resource_providers/{provider}/allocations"
    plain = {one: {"resources": {"VCPU": 1, "MEMORY_MB": 2}}, other: {"resources": {"VCPU": 3}}}
    assert ask(api, "GET", path, "1.0") == {"allocations": plain, "resource_provider_generation": 3}
    counted = {consumer: {**share, "consumer_generation": 1} for consumer, share in plain.items()}
    assert ask(api, "GET", path, "1.28") == {"allocations": counted, "resource_provider_generation": 3}


def test_a_provider_without_allocations_lists_none_and_an_unknown_one_is_not_found(api: Api) -> None:
    provider = make_provider(api)
    path = "/resource_providers/{}/allocations"
    assert ask(api, "GET", path.format(provider)) == {"allocations": {}, "resource_provider_generation": 0}
    answer = api.get(path.format(NOBODY))
    assert answer.status_code == 404
    assert f"No resource provider with uuid {NOBODY} found" in error_of(answer)["detail"]


@pytest.mark.parametrize("version", ["1.0", "1.7"])
def test_old_clients_claim_for_the_default_project_and_user(api: Api, version: str) -> None:
    provider, consumer = make_provider(api, VCPU=8), new_uuid()
    ask(api, "PUT", f"/allocations/{consumer}", version, listed_entry({provider: {"VCPU": 2}}))
    found = ask(api, "GET", f"/allocations/{consumer}", "1.38")
    assert (found["project_id"], found["user_id"]) == ("00000000-0000-0000-0000-000000000000",) * 2
    assert (found["consumer_generation"], found["consumer_type"]) == (1, "unknown")


def test_each_version_takes_its_own_form(api: Api) -> None:
    provider = make_provider(api, VCPU=80)
    shares = {provider: {"VCPU": 1}}
    counted = {**old_entry(shares), "consumer_generation": None}
    mapped = {**counted, "mappings": {"": [provider], "_GROUP-1": [provider, NOBODY]}}
    bodies = {
        "1.0": listed_entry(shares),
        "1.7": listed_entry(shares),
        "1.8": listed_entry(shares, **OWNER),
        "1.11": listed_entry(shares, **OWNER),
        "1.12": old_entry(shares),
        "1.27": old_entry(shares),
        "1.28": counted,
        "1.33": counted,
        "1.34": mapped,
        "1.37": counted,
        "1.38": {**mapped, "consumer_type": "INSTANCE"},
        "1.39": entry(shares),
    }
    for version, body in bodies.items():
        answer = api.put(f"/allocations/{new_uuid()}", body, version=version)
        assert (answer.status_code, answer.data) == (204, b""), (version, answer.text)
        assert "content-type" not in answer.headers
    assert used(api, provider) == {"VCPU": len(bodies)}


@pytest.mark.parametrize("version", ["1.12", "1.27", "1.28", "1.38"])
def test_the_body_of_an_answer_can_be_sent_back(api: Api, version: str) -> None:
    """As neutron-lib does; the providers' generations in it are not compared."""
    provider = make_provider(api, VCPU=8)
    consumer = claimed(api, {provider: {"VCPU": 2}})
    claimed(api, {provider: {"VCPU": 1}})
    body = ask(api, "GET", f"/allocations/{consumer}", version)
    body["allocations"][provider]["resources"]["VCPU"] = 3
    body["allocations"][provider]["generation"] -= 1
    ask(api, "PUT", f"/allocations/{consumer}", version, body)
    assert held(api, consumer) == {provider: {"VCPU": 3}}


def test_a_malformed_body_is_refused(api: Api) -> None:
    """All variants are in the tests of the schemas."""
    answer = api.put(f"/allocations/{NOBODY}", entry({NOBODY: {"VCPU": 0}}))
    assert answer.status_code == 400
    assert "JSON does not validate: 0 is less than the minimum of 1" in error_of(answer)["detail"]


def test_the_consumer_in_the_path_is_a_uuid_in_any_spelling(api: Api) -> None:
    provider, consumer = make_provider(api, VCPU=8), new_uuid()
    ask(api, "PUT", f"/allocations/{consumer.replace('-', '').upper()}", body=entry({provider: {"VCPU": 1}}))
    assert held(api, consumer) == {provider: {"VCPU": 1}}
    answer = api.put("/allocations/pony", {})
    assert answer.status_code == 400
    assert "Malformed consumer_uuid: pony" in error_of(answer)["detail"]


def test_unknown_providers_and_classes_are_refused(api: Api) -> None:
    provider = make_provider(api, VCPU=8)
    answer = api.put(f"/allocations/{NOBODY}", entry({provider: {"VCPU": 1}, NOBODY: {"VCPU": 1}}))
    assert answer.status_code == 400
    assert f"Allocation for resource provider '{NOBODY}' that does not exist." in error_of(answer)["detail"]
    answer = api.put(f"/allocations/{NOBODY}", entry({provider: {"CUSTOM_PONY": 1}}))
    assert answer.status_code == 400
    assert f"Unable to allocate inventory for consumer {NOBODY}" in error_of(answer)["detail"]
    assert "No such resource class CUSTOM_PONY" in error_of(answer)["detail"]


@pytest.mark.parametrize(
    ("resources", "reason"),
    [
        ({"MEMORY_MB": 1}, "Inventory for 'MEMORY_MB' on"),
        ({"VCPU": 1}, "would violate inventory constraints"),
        ({"VCPU": 18}, "would violate inventory constraints"),
        ({"VCPU": 5}, "would violate inventory constraints"),
        ({"DISK_GB": 9}, "The requested amount would exceed the capacity"),
        ({"VCPU": 2, "DISK_GB": 9}, "The requested amount would exceed the capacity"),
        ({"DISK_GB": 2**31}, "would violate inventory constraints"),
        ({"DISK_GB": 2**63 - 1}, "would violate inventory constraints"),
    ],
    ids=str,
)
def test_what_the_inventory_does_not_allow_conflicts(api: Api, resources: dict[str, int], reason: str) -> None:
    provider = make_provider(
        api,
        VCPU={"total": 16, "min_unit": 2, "max_unit": 16, "step_size": 2},
        DISK_GB={"total": 10, "reserved": 6, "allocation_ratio": 2.0},
    )
    answer = api.put(f"/allocations/{NOBODY}", entry({provider: resources}))
    assert answer.status_code == 409
    assert "Unable to allocate inventory" in error_of(answer)["detail"]
    assert reason in error_of(answer)["detail"]
    assert error_of(answer)["code"] == "placement.undefined_code"
    claimed(api, {provider: {"VCPU": 16, "DISK_GB": 8}})


def test_what_a_consumer_holds_already_does_not_count_against_it(api: Api) -> None:
    provider = make_provider(api, VCPU=8)
    consumer = claimed(api, {provider: {"VCPU": 5}})
    ask(api, "PUT", f"/allocations/{consumer}", body=entry({provider: {"VCPU": 8}}, 1))
    ask(api, "PUT", f"/allocations/{consumer}", body=entry({provider: {"VCPU": 8}}, 2))
    assert used(api, provider) == {"VCPU": 8}


class TestOverCapacity:
    """A provider whose inventory was reduced below its usage (bugs 2104040, 1924123, 1941892, 1943191)."""

    @pytest.fixture
    def provider(self, api: Api) -> str:
        return make_provider(api, VCPU=8, MEMORY_MB=1024)

    @pytest.fixture
    def consumer(self, api: Api, provider: str) -> str:
        consumer = claimed(api, {provider: {"VCPU": 6, "MEMORY_MB": 512}})
        claimed(api, {provider: {"VCPU": 2}})
        set_inventories(api, provider, VCPU=4, MEMORY_MB=1024)
        return consumer

    @pytest.mark.parametrize("amount", [6, 5, 1])
    def test_takes_a_change_that_does_not_increase_its_use(
        self, api: Api, provider: str, consumer: str, amount: int
    ) -> None:
        ask(api, "PUT", f"/allocations/{consumer}", body=entry({provider: {"VCPU": amount, "MEMORY_MB": 1024}}, 1))
        assert used(api, provider) == {"VCPU": amount + 2, "MEMORY_MB": 1024}

    def test_refuses_an_increase(self, api: Api, provider: str, consumer: str) -> None:
        answer = api.put(f"/allocations/{consumer}", entry({provider: {"VCPU": 7}}, 1))
        assert answer.status_code == 409
        assert "would exceed the capacity" in error_of(answer)["detail"]
        assert api.put(f"/allocations/{NOBODY}", entry({provider: {"VCPU": 1}})).status_code == 409

    def test_refuses_an_increase_of_one_class_only(self, api: Api, provider: str, consumer: str) -> None:
        claimed(api, {provider: {"MEMORY_MB": 512}})
        answer = api.put(f"/allocations/{consumer}", entry({provider: {"VCPU": 1, "MEMORY_MB": 513}}, 1))
        assert answer.status_code == 409

    def test_lets_allocations_move_to_another_consumer(self, api: Api, provider: str, consumer: str) -> None:
        """A migration transfers the instance's allocations to the migration's own consumer, and allocates elsewhere."""
        target, migration = make_provider(api, VCPU=8, MEMORY_MB=1024), new_uuid()
        shares = {"VCPU": 6, "MEMORY_MB": 512}
        body = {migration: entry({provider: shares}), consumer: entry({target: shares}, 1)}
        ask(api, "POST", "/allocations", body=body)
        assert held(api, migration) == {provider: shares}
        assert held(api, consumer) == {target: shares}

    def test_keeps_to_the_unit_rules(self, api: Api, provider: str, consumer: str) -> None:
        set_inventories(api, provider, VCPU={"total": 4, "max_unit": 4}, MEMORY_MB=1024)
        answer = api.put(f"/allocations/{consumer}", entry({provider: {"VCPU": 5}}, 1))
        assert answer.status_code == 409
        assert "would violate inventory constraints" in error_of(answer)["detail"]


def test_generations_move_on_for_the_providers_named(api: Api) -> None:
    one, other = make_provider(api, VCPU=8, MEMORY_MB=512), make_provider(api, VCPU=8)
    consumer = claimed(api, {one: {"VCPU": 1, "MEMORY_MB": 1}})
    assert (generation(api, one), generation(api, other)) == (2, 1)
    ask(api, "PUT", f"/allocations/{consumer}", body=entry({one: {"VCPU": 1, "MEMORY_MB": 1}}, 1))
    assert (generation(api, one), generation(api, other)) == (3, 1)
    # It moves away: the generation of the provider it leaves is unchanged.
    ask(api, "PUT", f"/allocations/{consumer}", body=entry({other: {"VCPU": 1}}, 2))
    assert (generation(api, one), generation(api, other)) == (3, 2)
    # It releases everything: the generation of the provider it leaves increases.
    ask(api, "PUT", f"/allocations/{consumer}", body=entry({}, 3))
    assert (generation(api, one), generation(api, other)) == (3, 3)
    consumer = claimed(api, {one: {"VCPU": 1}})
    ask(api, "DELETE", f"/allocations/{consumer}")
    assert generation(api, one) == 4


def test_the_consumer_generation_is_compared_from_1_28_on(api: Api) -> None:
    provider, consumer = make_provider(api, VCPU=8), new_uuid()
    path, body = f"/allocations/{consumer}", {provider: {"VCPU": 1}}

    def refused(given: int | None) -> str:
        answer = api.put(path, entry(body, given))
        assert (answer.status_code, error_of(answer)["code"]) == (409, "placement.concurrent_update")
        detail: str = error_of(answer)["detail"]
        return detail.rsplit("\n\n", maxsplit=1)[-1]

    assert refused(5) == "consumer generation conflict - expected null but got 5"
    ask(api, "PUT", path, body=entry(body))
    assert refused(None) == "consumer generation conflict - expected 1 but got None"
    assert refused(2) == "consumer generation conflict - expected 1 but got 2"
    ask(api, "PUT", path, body=entry(body, 1))
    # Older clients do not compare it, but increase it.
    ask(api, "PUT", path, "1.27", old_entry(body))
    assert consumer_generation(api, consumer) == 3


@pytest.mark.parametrize("give_up", ["PUT", "POST", "DELETE"])
def test_a_consumer_that_gives_up_everything_is_forgotten(api: Api, give_up: str) -> None:
    provider = make_provider(api, VCPU=8)
    consumer = claimed(api, {provider: {"VCPU": 1}})
    nothing = entry({}, 1)
    bodies = {"PUT": nothing, "POST": {consumer: nothing}, "DELETE": None}
    path = "/allocations" if give_up == "POST" else f"/allocations/{consumer}"
    ask(api, give_up, path, body=bodies[give_up])
    assert ask(api, "GET", f"/allocations/{consumer}") == {"allocations": {}}
    assert used(api, provider) == {"VCPU": 0}
    ask(api, "PUT", f"/allocations/{consumer}", body=entry({provider: {"VCPU": 1}}))
    assert consumer_generation(api, consumer) == 1


def test_an_empty_claim_of_an_unknown_consumer_leaves_nothing_behind(api: Api) -> None:
    """In the reference a hidden consumer remains, and the next claim conflicts with it."""
    provider = make_provider(api, VCPU=8)
    ask(api, "PUT", f"/allocations/{NOBODY}", body=entry({}))
    ask(api, "PUT", f"/allocations/{NOBODY}", body=entry({provider: {"VCPU": 1}}))
    assert consumer_generation(api, NOBODY) == 1


def test_deleting_what_is_not_there_is_not_found(api: Api) -> None:
    for consumer in (NOBODY, "pony"):
        answer = api.delete(f"/allocations/{consumer}")
        assert answer.status_code == 404
        assert f"No allocations for consumer '{consumer}'" in error_of(answer)["detail"]


def test_a_change_of_owner_is_kept_or_dropped_with_the_write(api: Api) -> None:
    provider = make_provider(api, VCPU=8)
    consumer = claimed(api, {provider: {"VCPU": 1}})
    path, other = f"/allocations/{consumer}", {"project_id": "p2", "user_id": "u2", "consumer_type": "MIGRATION"}
    assert api.put(path, entry({provider: {"VCPU": 9}}, 1, **other)).status_code == 409
    found = ask(api, "GET", path)
    assert {key: found[key] for key in other} == {**OWNER, "consumer_type": "INSTANCE"}
    ask(api, "PUT", path, body=entry({provider: {"VCPU": 8}}, 1, **other))
    found = ask(api, "GET", path)
    assert {key: found[key] for key in other} == other
    # A client that does not know types does not change it.
    ask(api, "PUT", path, "1.37", {**old_entry({provider: {"VCPU": 7}}), "consumer_generation": 2})
    found = ask(api, "GET", path)
    assert {key: found[key] for key in other} == {**OWNER, "consumer_type": "MIGRATION"}


def test_a_provider_given_twice_in_the_old_list_counts_once(api: Api) -> None:
    provider, consumer = make_provider(api, VCPU=8, MEMORY_MB=8), new_uuid()
    body = listed_entry({provider: {"VCPU": 1}})
    body["allocations"] += listed_entry({provider: {"MEMORY_MB": 2}})["allocations"]
    ask(api, "PUT", f"/allocations/{consumer}", "1.0", body)
    assert held(api, consumer) == {provider: {"MEMORY_MB": 2}}


def test_answers_are_dated_from_1_15_on(api: Api) -> None:
    provider = make_provider(api, VCPU=8)
    consumer = claimed(api, {provider: {"VCPU": 1}})
    for path in (f"/allocations/{consumer}", f"/allocations/{NOBODY}", f"/resource_providers/{provider}/allocations"):
        old, new = api.get(path, version="1.14"), api.get(path, version="1.15")
        assert "last-modified" not in old.headers
        assert "cache-control" not in old.headers
        assert new.headers["cache-control"] == "no-cache"
        assert new.headers["last-modified"].endswith("GMT")


def test_media_types_and_methods(api: Api) -> None:
    put = {"method": "PUT", "path": f"/allocations/{NOBODY}", "data": "{}"}
    assert api.request(**put, content_type="text/plain").status_code == 415
    assert api.request("POST", "/allocations", data="{}", content_type="text/plain").status_code == 415
    for path in (f"/allocations/{NOBODY}", f"/resource_providers/{NOBODY}/allocations"):
        assert api.get(path, headers={"accept": "text/plain"}).status_code == 406
    answer = api.get("/allocations")
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    assert api.post("/allocations", {}, version="1.12").status_code == 404


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", f"/allocations/{NOBODY}"),
        ("PUT", f"/allocations/{NOBODY}"),
        ("DELETE", f"/allocations/{NOBODY}"),
        ("POST", "/allocations"),
        ("GET", f"/resource_providers/{NOBODY}/allocations"),
    ],
)
def test_only_admins_and_services_may_look_and_touch(api: Api, method: str, path: str) -> None:
    """Checked before the body and before any lookup."""
    body = {} if method == "GET" or method == "DELETE" else {"json": {"pony": 1}}
    assert api.request(method, path, headers={"x-auth-token": "user"}, **body).status_code == 403
