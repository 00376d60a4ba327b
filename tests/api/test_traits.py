"""Names and groups of providers: traits, resource classes and aggregates. The conformance suite has the rest."""

import uuid

import os_resource_classes
import os_traits
import pytest

from tests.api.conftest import Api, compares_without_case
from tests.claims import change, detail_of, make_provider
from tests.http_calls import ask

AVX = "HW_CPU_X86_AVX"
A, B = (f"{letter * 8}-0000-4000-8000-000000000000" for letter in "ab")
INVALID = (
    "The trait is invalid. A valid trait must be no longer than 255 characters, start with the prefix "
    '"CUSTOM_" and use following characters: "A"-"Z", "0"-"9" and "_"'
)


def listed(api: Api, query: str = "") -> list[str]:
    names: list[str] = ask(api, "GET", f"/traits?{query}")["traits"]
    return names


def test_standard_names_come_before_custom_ones(api: Api) -> None:
    for name in ("CUSTOM_B", "CUSTOM_A"):
        ask(api, "PUT", f"/traits/{name}")
        ask(api, "PUT", f"/resource_classes/{name}")
    *standard, first, last = listed(api)
    assert (set(standard), first, last) == (set(os_traits.get_traits()), "CUSTOM_B", "CUSTOM_A")
    classes = ask(api, "GET", "/resource_classes", "1.2")["resource_classes"]
    assert [row["name"] for row in classes] == [*os_resource_classes.STANDARDS, "CUSTOM_B", "CUSTOM_A"]
    assert ask(api, "GET", "/resource_classes/CUSTOM_A", "1.2") == classes[-1]
    assert classes[0] == {"name": "VCPU", "links": [{"rel": "self", "href": "/resource_classes/VCPU"}]}


def test_a_body_is_not_looked_at(api: Api) -> None:
    """Some clients send an empty object with the PUT."""
    assert api.put("/traits/CUSTOM_A", {}).status_code == 201


def test_other_names_are_refused(api: Api) -> None:
    for name in ("CUSTOM_", "CUSTOM_a", "CUSTOM-A", "PONY", AVX, "CUSTOM_" + "X" * 249, "CUSTOM_%0A"):
        assert detail_of(api.put(f"/traits/{name}")).endswith(INVALID)


def test_filters_of_the_list(api: Api) -> None:
    custom = ["CUSTOM_A", "CUSTOM_AB", "CUSTOM_B"]
    for name in custom:
        ask(api, "PUT", f"/traits/{name}")
    change(api, make_provider(api), "traits", [AVX, "CUSTOM_B"])
    everything = listed(api)
    expected = {
        "name=in:CUSTOM_B,CUSTOM_A,PONY": ["CUSTOM_A", "CUSTOM_B"],
        f"name=in:{AVX}": [AVX],
        "name=in:": [],
        "name=startswith:CUSTOM_": custom,
        "name=startswith:CUSTOM_A": ["CUSTOM_A", "CUSTOM_AB"],
        "name=startswith:CUSTOM%25": [],
        "name=startswith:custom": custom if compares_without_case(api) else [],
        "name=startswith:CUSTOMX": [],
        "name=startswith:": everything,
        "name=pony:CUSTOM_A": everything,
        "associated=true": [AVX, "CUSTOM_B"],
        "associated=TRUE&name=startswith:CUSTOM": ["CUSTOM_B"],
        "associated=False&name=startswith:CUSTOM": ["CUSTOM_A", "CUSTOM_AB"],
        "associated=true&name=in:CUSTOM_A": [],
    }
    assert {query: listed(api, query) for query in expected} == expected


def test_unknown_traits_are_named_however_many(api: Api) -> None:
    path = f"/resource_providers/{make_provider(api)}/traits"
    answer = api.put(path, {"traits": [AVX, "PONY", "UNICORN"], "resource_provider_generation": 0})
    assert "No such trait PONY, UNICORN" in detail_of(answer)
    many = [f"CUSTOM_{number}" for number in range(33_000)]
    assert api.put(path, {"traits": many, "resource_provider_generation": 0}).status_code == 400


def test_a_class_made_again_is_a_new_one(api: Api) -> None:
    """Its id may change, so no process may cache it."""
    for _ in range(2):
        ask(api, "PUT", "/resource_classes/CUSTOM_A")
        ask(api, "PUT", "/resource_classes/CUSTOM_B")
        provider = make_provider(api, CUSTOM_B=1)
        assert set(ask(api, "GET", f"/resource_providers/{provider}/inventories")["inventories"]) == {"CUSTOM_B"}
        for path in (f"resource_providers/{provider}", "resource_classes/CUSTOM_A", "resource_classes/CUSTOM_B"):
            ask(api, "DELETE", f"/{path}")


def aggregates(provider: str) -> str:
    return f"/resource_providers/{provider}/aggregates"


def members(api: Api, query: str) -> list[str]:
    return [row["uuid"] for row in ask(api, "GET", f"/resource_providers?{query}")["resource_providers"]]


def test_uuids_of_aggregates_are_kept_as_they_were_written(api: Api) -> None:
    """The SDK sends them without dashes. Those that do not fit the column are normalised."""
    provider, dashless = make_provider(api), uuid.UUID(B).hex
    ask(api, "PUT", aggregates(provider), "1.1", [dashless, f"urn:uuid:{A}"])
    assert set(ask(api, "GET", aggregates(provider), "1.1")["aggregates"]) == {dashless, A}
    assert (members(api, f"member_of={dashless}"), members(api, f"member_of={B}")) == ([provider], [])


def test_an_aggregate_is_found_only_as_it_was_written(api: Api) -> None:
    """Whatever the database thinks of upper case."""
    lower, upper = "8b5f1314-7431-4386-a979-9d390964a4a9", "8B5F1314-7431-4386-A979-9D390964A4A9"
    provider = make_provider(api)
    ask(api, "PUT", aggregates(provider), "1.1", [lower])
    queries = (f"member_of={lower}", f"member_of={upper}", f"member_of=!{lower}", f"member_of=!{upper}")
    assert [members(api, query) for query in queries] == [[provider], [], [], [provider]]


@pytest.mark.any_database
def test_a_provider_may_be_in_ten_thousand_aggregates(api: Api) -> None:
    """As many as a list in a body may have."""
    provider = make_provider(api)
    for number in (10_000, 0):
        ask(api, "PUT", aggregates(provider), "1.1", [str(uuid.UUID(int=each)) for each in range(number)])
        assert len(ask(api, "GET", aggregates(provider), "1.1")["aggregates"]) == number
