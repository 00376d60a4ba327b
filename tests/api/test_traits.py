"""Traits, and the traits of providers."""

import os_traits

from tests.api.conftest import Api, compares_without_case
from tests.claims import ask, detail_of, error_of, generation, make_provider

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


def test_bad_filters_are_refused(api: Api) -> None:
    sentences = {
        "name=CUSTOM_A": 'Got: "CUSTOM_A"',
        "name=": "Badly formatted name parameter. Expected name query string parameter in form: "
        '?name=[in|startswith]:[name1,name2|prefix]. Got: ""',
        "associated=1": 'The query parameter "associated" only accepts "true" or "false"',
        "pony=1": "'pony' was unexpected",
        "name=in:" + "A," * 5000: "too many values for 'name'",
    }
    for query, sentence in sentences.items():
        assert sentence in detail_of(api.get(f"/traits?{query}"))


def test_the_generation_moves_on_when_the_traits_of_a_provider_change(api: Api) -> None:
    provider = make_provider(api)
    assert ask(api, "GET", of(provider)) == {"traits": [], "resource_provider_generation": 0}
    for traits, after in (([AVX, SSE], 1), ([SSE, AVX, SSE], 1), ([SSE], 2), ([], 3), ([], 3)):
        body = {"traits": traits, "resource_provider_generation": generation(api, provider)}
        answer = ask(api, "PUT", of(provider), body=body)
        assert answer == ask(api, "GET", of(provider))
        assert (set(answer["traits"]), answer["resource_provider_generation"]) == (set(traits), after)


def test_a_stale_generation_is_a_conflict(api: Api) -> None:
    provider = make_provider(api)
    for stale in (1, -1, 2**63 - 1):
        answer = api.put(of(provider), {"traits": [AVX], "resource_provider_generation": stale})
        assert error_of(answer, 409)["code"] == "placement.concurrent_update"
        assert "Resource provider's generation already changed" in answer.text


def test_unknown_traits_are_named(api: Api) -> None:
    provider = make_provider(api)
    answer = api.put(of(provider), {"traits": [AVX, "PONY", "UNICORN"], "resource_provider_generation": 0})
    assert answer.status_code == 400
    assert "No such trait PONY, UNICORN" in answer.text
    many = [f"CUSTOM_{number}" for number in range(33_000)]
    answer = api.put(of(provider), {"traits": many, "resource_provider_generation": 0})
    assert answer.status_code == 400


OTHER_FORMS = [
    ({"traits": []}, "'resource_provider_generation' is a required property"),
    ({"resource_provider_generation": 0}, "'traits' is a required property"),
    ({"traits": [""], "resource_provider_generation": 0}, "'' should be non-empty"),
    ({"traits": ["X" * 256], "resource_provider_generation": 0}, "Failed validating 'maxLength'"),
    ({"traits": [None], "resource_provider_generation": 0}, "None is not of type 'string'"),
    ({"traits": ["A\0"], "resource_provider_generation": 0}, "contains a NUL character"),
    ({"traits": {}, "resource_provider_generation": 0}, "{} is not of type 'array'"),
    ({"traits": [], "resource_provider_generation": 0, "pony": 1}, "'pony' was unexpected"),
]


def test_bodies_of_another_form_are_refused(api: Api) -> None:
    provider = make_provider(api)
    for body, sentence in OTHER_FORMS:
        assert sentence in detail_of(api.put(of(provider), body))
