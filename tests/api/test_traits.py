"""Traits, and the traits of providers."""

import os_traits

from tests.api.conftest import Api, compares_without_case
from tests.claims import ask, detail_of, generation, make_provider

AVX, SSE = "HW_CPU_X86_AVX", "HW_CPU_X86_SSE"
INVALID = (
    "The trait is invalid. A valid trait must be no longer than 255 characters, start with the prefix "
    '"CUSTOM_" and use following characters: "A"-"Z", "0"-"9" and "_"'
)


def of(provider: str) -> str:
    return f"/resource_providers/{provider}/traits"


def listed(api: Api, query: str = "") -> list[str]:
    names: list[str] = ask(api, "GET", f"/traits?{query}")["traits"]
    return names


def give(api: Api, provider: str, *traits: str) -> None:
    ask(api, "PUT", of(provider), body={"traits": traits, "resource_provider_generation": generation(api, provider)})


def test_standard_traits_come_before_custom_ones(api: Api) -> None:
    for name in ("CUSTOM_B", "CUSTOM_A"):
        ask(api, "PUT", f"/traits/{name}")
    names = listed(api)
    assert set(names[:-2]) == set(os_traits.get_traits())
    assert names[-2:] == ["CUSTOM_B", "CUSTOM_A"]


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
    give(api, make_provider(api), AVX, "CUSTOM_B")
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


def test_unknown_traits_are_named(api: Api) -> None:
    provider = make_provider(api)
    answer = api.put(of(provider), {"traits": [AVX, "PONY", "UNICORN"], "resource_provider_generation": 0})
    assert answer.status_code == 400
    assert "No such trait PONY, UNICORN" in answer.text
    many = [f"CUSTOM_{number}" for number in range(33_000)]
    answer = api.put(of(provider), {"traits": many, "resource_provider_generation": 0})
    assert answer.status_code == 400
