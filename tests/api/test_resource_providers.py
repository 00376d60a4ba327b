"""Providers: their life cycle, lists of them, inventories and usages. The conformance suite has the rest.

tests/store also checks that filters select the right ones.
"""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from werkzeug.test import TestResponse

from tests.api.conftest import Api, compares_without_case
from tests.claims import change, claimed, entry, error_of, generation, make_provider, new_uuid, old_entry
from tests.http_calls import ask
from tests.store.rows import run

NEWEST = "Sat, 05 Jun 2021 04:03:02 GMT"
NOBODY = "11111111-2222-3333-4444-555555555555"
A, B, C = (f"{letter * 8}-0000-4000-8000-000000000000" for letter in "abc")
each_usage = pytest.mark.parametrize("keeps_usage", [True, False], ids=["kept", "summed"])


def named(api: Api, name: str) -> str:
    identity = new_uuid()
    ask(api, "POST", "/resource_providers", body={"name": name, "uuid": identity})
    return identity


def conflict(answer: TestResponse) -> tuple[str, str]:
    """Return the code and the last line of the detail, which is all that the openstack command shows."""
    error = error_of(answer, 409)
    return error["code"], error["detail"].splitlines()[-1]


def test_a_uuid_without_dashes_gets_them(api: Api) -> None:
    made = ask(api, "POST", "/resource_providers", body={"name": "a", "uuid": UUID(NOBODY).hex.upper()})
    assert made["uuid"] == NOBODY


def test_names_may_be_of_any_script(api: Api) -> None:
    provider = named(api, "å" * 200)
    assert ask(api, "GET", f"/resource_providers/{provider}")["name"] == "å" * 200
    (row,) = ask(api, "GET", "/resource_providers?name=" + "%C3%A5" * 200)["resource_providers"]
    assert row["uuid"] == provider


def test_a_taken_name_or_uuid_is_a_conflict_that_names_it(api: Api) -> None:
    """Clients like nova take a message beginning with the name for a name conflict, and otherwise look up the uuid."""
    provider = named(api, "taken")
    bodies = {
        "name: taken": {"name": "taken"},
        f"uuid: {provider}": {"name": "other", "uuid": provider},
        f"uuid: {provider}, name: taken": {"name": "taken", "uuid": provider},
    }
    for clash, body in bodies.items():
        sentence = f"Conflicting resource provider {clash} already exists."
        assert conflict(api.post("/resource_providers", body)) == ("placement.duplicate_name", sentence)


def test_an_unknown_provider_is_found_missing_before_the_body_is_found_bad(api: Api) -> None:
    for provider, status in ((NOBODY, 404), (named(api, "a"), 400)):
        assert api.put(f"/resource_providers/{provider}", {"pony": 1}).status_code == status


def test_providers_are_found_by_their_very_uuid(api: Api) -> None:
    assert api.get(f"/resource_providers/{UUID(named(api, 'a')).hex}").status_code == 404


def test_a_provider_goes_with_all_it_has(api: Api) -> None:
    provider = make_provider(api, VCPU=4)
    change(api, provider, "traits", ["HW_CPU_X86_AVX"])
    change(api, provider, "aggregates", [NOBODY])
    ask(api, "DELETE", f"/allocations/{claimed(api, {provider: {'VCPU': 1}})}")
    answer = api.delete(f"/resource_providers/{provider}")
    assert (answer.status_code, answer.data) == (204, b"")
    assert api.get(f"/resource_providers/{provider}").status_code == 404
    # The next provider may get the same row id; nothing of the old one may be left for it.
    again = named(api, "again")
    assert generation(api, again) == 0
    for part, empty in {"inventories": {}, "traits": [], "aggregates": [], "usages": {}}.items():
        assert ask(api, "GET", f"/resource_providers/{again}/{part}")[part] == empty


@pytest.fixture
def cloud(api: Api) -> dict[str, str]:
    """Two providers in one tree, and one in another."""
    big = make_provider(api, VCPU=8, DISK_GB={"total": 100, "reserved": 90})
    small = make_provider(api, VCPU={"total": 4, "max_unit": 2, "min_unit": 2})
    other = make_provider(api, VCPU={"total": 4, "allocation_ratio": 2.0, "step_size": 4})
    ask(api, "PUT", f"/resource_providers/{small}", body={"name": "små", "parent_provider_uuid": big})
    for provider, aggregates in ((big, [A]), (small, [A, B]), (other, [C])):
        change(api, provider, "aggregates", aggregates)
    return {big: "big", small: "small", other: "other"}


def listed(api: Api, cloud: dict[str, str], query: str) -> str:
    rows = ask(api, "GET", f"/resource_providers?{query}")["resource_providers"]
    return " ".join(cloud[row["uuid"]] for row in rows)


def test_semicolons_separate_parameters_too(api: Api) -> None:
    """As in the reference, so a semicolon in a name has to be encoded."""
    cloud = {named(api, name): name for name in ("a;b", "a")}
    assert listed(api, cloud, "name=a%3Bb") == "a;b"
    assert listed(api, cloud, "name=a;resources=VCPU:1") == ""
    assert listed(api, cloud, f"name=a;member_of=!{new_uuid()}") == "a"
    assert api.get("/resource_providers?name=a;b").status_code == 400


def test_the_case_of_a_name_matters(api: Api, cloud: dict[str, str]) -> None:
    """On MariaDB the collation of the tables is decisive, as for openstack-placement."""
    assert listed(api, cloud, "name=SM%C3%A5") == ("small" if compares_without_case(api) else "")


@each_usage
def test_what_is_allocated_is_not_left(api: Api, cloud: dict[str, str], keeps_usage: bool) -> None:
    """Usage is summed if the triggers that keep it are missing."""
    api.database.keeps_usage = keeps_usage
    big = next(uuid for uuid, name in cloud.items() if name == "big")
    for _ in range(2):
        claimed(api, {big: {"VCPU": 3}})
    assert listed(api, cloud, "resources=VCPU:2") == "big small"
    assert listed(api, cloud, "resources=VCPU:3") == ""


def test_many_aggregates_fit_one_query(api: Api, cloud: dict[str, str]) -> None:
    """A join for each condition would keep PostgreSQL planning for minutes."""
    some = ",".join(new_uuid() for _ in range(200))
    each = "&".join(f"member_of=in:{A},{new_uuid()}" for _ in range(200))
    assert listed(api, cloud, f"member_of=in:{B},{some}") == "small"
    assert listed(api, cloud, each) == "big small"


@pytest.mark.parametrize(
    ("path", "table"),
    [
        ("/resource_providers", "resource_providers"),
        ("/resource_providers/{}/inventories", "inventories"),
        ("/resource_providers/{}/traits", "traits"),
        ("/resource_providers/{}/allocations", "allocations"),
        ("/traits", "traits"),
        ("/resource_classes", "resource_classes"),
    ],
)
def test_a_list_is_dated_by_its_newest_change(api: Api, cloud: dict[str, str], path: str, table: str) -> None:
    """The microseconds of the tables are truncated, and the kinds of databases return dates in different forms."""
    big = next(uuid for uuid, name in cloud.items() if name == "big")
    change(api, big, "traits", ["HW_CPU_X86_AVX", "HW_CPU_X86_AVX2"])
    claimed(api, {big: {"VCPU": 1, "DISK_GB": 1}})
    with api.database.writer.begin() as connection:
        dated = f"UPDATE {table} SET created_at = '2020-01-01', updated_at = '2020-01-01 00:00:00'"
        run(connection, dated, f"UPDATE {table} SET updated_at = '2021-06-05 04:03:02' WHERE id % 2 = 1")
    answer = api.get(path.format(big))
    assert (answer.headers["last-modified"], answer.headers["cache-control"]) == (NEWEST, "no-cache")
    assert "last-modified" not in api.get(path.format(big), version="1.14").headers


def test_a_list_without_rows_is_dated_by_now(api: Api) -> None:
    before = datetime.now(UTC).replace(microsecond=0)
    assert api.get("/resource_providers").last_modified >= before
    assert api.get("/allocation_candidates?resources=VCPU:1").last_modified >= before


def inventories(provider: str, *below: str) -> str:
    return "/".join(("/resource_providers", provider, "inventories", *below))


def test_a_whole_number_may_be_written_with_a_point(api: Api) -> None:
    provider = make_provider(api, VCPU={"total": 4.0, "allocation_ratio": 2})
    written = api.get(inventories(provider, "VCPU")).data
    assert (b'"total":4,' in written, b'"allocation_ratio":2.0' in written) == (True, True)


def test_inventory_in_use_stays(api: Api) -> None:
    provider = make_provider(api, DISK_GB=100, MEMORY_MB=100, VCPU=10)
    claimed(api, {provider: {"DISK_GB": 1, "VCPU": 1}})
    in_use, sentence = "placement.inventory.inuse", f"Inventory for '{{}}' on resource provider '{provider}' in use."
    assert conflict(api.delete(inventories(provider))) == (in_use, sentence.format("VCPU, DISK_GB"))
    body = {"resource_provider_generation": 2, "inventories": {"MEMORY_MB": {"total": 1}}}
    answer = api.put(inventories(provider), body)
    assert conflict(answer) == (in_use, f"update conflict: {sentence.format('VCPU, DISK_GB')}")
    code, told = conflict(api.delete(inventories(provider, "VCPU")))
    assert (code, sentence.format("VCPU") in told) == ("placement.concurrent_update", True)
    assert set(ask(api, "GET", inventories(provider))["inventories"]) == {"VCPU", "MEMORY_MB", "DISK_GB"}
    assert api.delete(inventories(provider, "MEMORY_MB")).status_code == 204


@pytest.mark.any_database
def test_a_body_may_name_as_many_classes_as_the_limit_allows(api: Api) -> None:
    body = {"resource_provider_generation": 0, "inventories": {f"CUSTOM_{n}": {"total": 1} for n in range(10_000)}}
    answer = api.put(inventories(make_provider(api)), body)
    assert "Unknown resource class in inventory" in error_of(answer)["detail"]


@pytest.fixture
def provider(api: Api) -> str:
    """A provider with an instance of each of two projects; p1 also has a migration and a consumer without a type."""
    provider = make_provider(api, VCPU=100, MEMORY_MB=10000, DISK_GB=10)
    claimed(api, {provider: {"VCPU": 1, "MEMORY_MB": 100}}, project_id="p1", user_id="u1")
    claimed(api, {provider: {"VCPU": 2}}, project_id="p1", user_id="u2")
    claimed(api, {provider: {"VCPU": 4}}, project_id="p1", user_id="u1", consumer_type="MIGRATION")
    claimed(api, {provider: {"VCPU": 8}}, project_id="p2", user_id="u1")
    untyped = old_entry({provider: {"VCPU": 16, "MEMORY_MB": 200}}, project_id="p1", user_id="u1")
    ask(api, "PUT", f"/allocations/{new_uuid()}", "1.12", untyped)
    return provider


@each_usage
def test_a_provider_shows_every_class_it_has(api: Api, provider: str, keeps_usage: bool) -> None:
    """Usage is summed if the triggers that keep it are missing."""
    api.database.keeps_usage = keeps_usage
    claimed(api, {provider: {"DISK_GB": 10}})
    assert api.put(f"/allocations/{NOBODY}", entry({provider: {"DISK_GB": 1}})).status_code == 409
    usages = ask(api, "GET", f"/resource_providers/{provider}/usages")
    assert usages == {"usages": {"VCPU": 31, "MEMORY_MB": 300, "DISK_GB": 10}, "resource_provider_generation": 7}


def test_consumers_are_counted_by_their_type(api: Api, provider: str) -> None:
    """The reference answers 500 on PostgreSQL. A consumer of several classes or providers counts once."""
    instances = {"VCPU": 3, "MEMORY_MB": 100, "consumer_count": 2}
    migrations = {"VCPU": 4, "consumer_count": 1}
    untyped = {"VCPU": 16, "MEMORY_MB": 200, "consumer_count": 1}
    expected: dict[str, dict[str, Any]] = {
        "project_id=p1": {"INSTANCE": instances, "MIGRATION": migrations, "unknown": untyped},
        "project_id=p1&user_id=u1": {
            "INSTANCE": {"VCPU": 1, "MEMORY_MB": 100, "consumer_count": 1},
            "MIGRATION": migrations,
            "unknown": untyped,
        },
        "project_id=p1&consumer_type=INSTANCE": {"INSTANCE": instances},
        "project_id=p1&consumer_type=unknown": {"unknown": untyped},
        "project_id=p1&consumer_type=all": {"all": {"VCPU": 23, "MEMORY_MB": 300, "consumer_count": 4}},
        "project_id=p1&user_id=u2&consumer_type=all": {"all": {"VCPU": 2, "consumer_count": 1}},
        "project_id=p1&consumer_type=PONY": {},
        "project_id=p1&consumer_type=ALL": {},
        "project_id=p1&consumer_type=UNKNOWN": {},
        "project_id=p2&consumer_type=unknown": {},
        "project_id=nobody&consumer_type=all": {},
        "project_id=nobody": {},
    }
    assert {query: ask(api, "GET", f"/usages?{query}", "1.38")["usages"] for query in expected} == expected
