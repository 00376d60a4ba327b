"""The list of providers and its filters. tests/store also checks that they select the right ones."""

import pytest

from tests.api.conftest import Api, compares_without_case
from tests.claims import ask, claimed, make_provider, new_uuid

A, B, C = (f"{letter * 8}-0000-4000-8000-000000000000" for letter in "abc")
AVX, SSE, SSD = "HW_CPU_X86_AVX", "HW_CPU_X86_SSE", "STORAGE_DISK_SSD"


@pytest.fixture
def cloud(api: Api) -> dict[str, str]:
    """Two providers in one tree, and one in another."""
    big = make_provider(api, VCPU=8, DISK_GB={"total": 100, "reserved": 90})
    small = make_provider(api, VCPU={"total": 4, "max_unit": 2, "min_unit": 2})
    other = make_provider(api, VCPU={"total": 4, "allocation_ratio": 2.0, "step_size": 4})
    ask(api, "PUT", f"/resource_providers/{small}", body={"name": "små", "parent_provider_uuid": big})
    for provider, traits, aggregates in ((big, [AVX, SSE], [A]), (small, [AVX], [A, B]), (other, [SSD], [C])):
        give(api, provider, "traits", traits)
        give(api, provider, "aggregates", aggregates)
    return {big: "big", small: "small", other: "other"}


def give(api: Api, provider: str, what: str, values: list[str]) -> None:
    """Set the traits or aggregates of a provider."""
    path = f"/resource_providers/{provider}"
    generation = ask(api, "GET", path)["generation"]
    ask(api, "PUT", f"{path}/{what}", body={what: values, "resource_provider_generation": generation})


def names(api: Api, cloud: dict[str, str], query: str, version: str = "1.39") -> str:
    found = ask(api, "GET", f"/resource_providers?{query}", version)["resource_providers"]
    return " ".join(cloud[provider["uuid"]] for provider in found)


FOUND = {
    "": "big small other",
    "name=sm%C3%A5": "small",
    "name=": "big small other",
    "name=nobody": "",
    "resources=VCPU:2": "big small",
    "resources=VCPU:3": "big",
    "resources=VCPU:8": "big other",
    "resources=VCPU:9": "",
    "resources=VCPU:1,DISK_GB:10": "big",
    "resources=VCPU:1,DISK_GB:11": "",
    "resources=VCPU:2147483648": "",
    f"resources=VCPU:{2**63 - 1}": "",
    f"member_of={A}": "big small",
    f"member_of={A}&member_of={B}": "small",
    f"member_of=in:{B},{C}": "small other",
    f"member_of=in:{B},{C}&member_of=!{C}": "small",
    f"member_of=!in:{B},{C}": "big",
    f"member_of={new_uuid()}": "",
    f"required={AVX}": "big small",
    f"required={AVX},{SSE}": "big",
    f"required={AVX},!{SSE}": "small",
    f"required={AVX},!{AVX}": "",
    f"required=in:{SSE},{SSD}": "big other",
    f"required=in:{SSE},{SSD}&required={AVX}": "big",
    f"required=in:{SSE},{SSD}&required=in:{SSD},{AVX}&required=!{SSD}": "big",
    f"in_tree={new_uuid()}": "",
    f"uuid={new_uuid()}": "",
    f"resources=VCPU:2&member_of={A}&required=!{SSE}": "small",
}


def test_filters_hold_together(api: Api, cloud: dict[str, str]) -> None:
    assert {query: names(api, cloud, query) for query in FOUND} == FOUND


def test_semicolons_separate_parameters_too(api: Api) -> None:
    """As in the reference, so a semicolon in a name has to be encoded."""
    for name in ("a;b", "a"):
        api.post("/resource_providers", {"name": name, "uuid": new_uuid()})

    def names(query: str) -> list[str]:
        found = api.get(f"/resource_providers?{query}").get_json()["resource_providers"]
        return [one["name"] for one in found]

    assert names("name=a%3Bb") == ["a;b"]
    assert names("name=a;resources=VCPU:1") == []
    assert names(f"name=a;member_of=!{new_uuid()}") == ["a"]
    assert api.get("/resource_providers?name=a;b").status_code == 400


def test_the_case_of_a_name_matters(api: Api, cloud: dict[str, str]) -> None:
    """On MariaDB the collation of the tables is decisive, as for openstack-placement."""
    expected = "small" if compares_without_case(api) else ""
    assert names(api, cloud, "name=SM%C3%A5") == expected


def test_a_tree_is_found_by_any_of_its_providers(api: Api, cloud: dict[str, str]) -> None:
    by_name = {name: uuid for uuid, name in cloud.items()}
    assert names(api, cloud, f"in_tree={by_name['small']}") == "big small"
    assert names(api, cloud, f"in_tree={by_name['big']}&uuid={by_name['small']}") == "small"
    assert names(api, cloud, f"in_tree={by_name['other']}") == "other"


@pytest.mark.parametrize("keeps_usage", [True, False], ids=["kept", "summed"])
def test_what_is_allocated_is_not_left(api: Api, cloud: dict[str, str], keeps_usage: bool) -> None:
    """Usage is summed if the triggers that keep it are missing."""
    api.app.extensions["placement"].database.keeps_usage = keeps_usage
    by_name = {name: uuid for uuid, name in cloud.items()}
    claimed(api, {by_name["big"]: {"VCPU": 3}})
    claimed(api, {by_name["big"]: {"VCPU": 3}})
    assert names(api, cloud, "resources=VCPU:2") == "big small"
    assert names(api, cloud, "resources=VCPU:3") == ""


def test_repeated_filters_before_their_microversion(api: Api, cloud: dict[str, str]) -> None:
    """Of repeated traits only the last counts until 1.38; repeated aggregates are refused until 1.23."""
    assert names(api, cloud, f"required={SSD}&required={SSE}", "1.38") == "big"
    answer = api.get(f"/resource_providers?member_of={A}&member_of={B}", version="1.23")
    assert answer.status_code == 400
    assert "Multiple member_of parameters are not supported" in answer.text


REFUSED = {
    "pony=1": "'pony' was unexpected",
    "uuid=pony": "'pony' is not a 'uuid'",
    "uuid=aaaaaaaa000040008000000000000000": "is not a 'uuid'",
    "in_tree=pony": "'pony' is not a 'uuid'",
    "resources=": "Got: empty string.",
    "resources=VCPU:100000000000000000000": "requires amount <=",
    "resources=PONY:1": "Invalid resource class in resources parameter: No such resource class PONY.",
    "required=": "Got an empty trait in",
    "required=PONY": "No such trait(s): PONY.",
    "required=!PONY,PONIES": "No such trait(s): PONIES, PONY.",
    "member_of=pony": "Expected 'member_of' parameter to contain valid UUID(s). Got: pony",
    "name=%00": "NUL characters are not allowed",
    "name=%FF": "Invalid query string parameters",
    "&".join(["name=a"] * 1001): "Max number of fields exceeded",
}


def test_bad_filters_are_refused(api: Api) -> None:
    answers = {query: api.get(f"/resource_providers?{query}") for query in REFUSED}
    assert {answer.status_code for answer in answers.values()} == {400}
    details = {query: answer.get_json()["errors"][0]["detail"] for query, answer in answers.items()}
    assert [query for query, sentence in REFUSED.items() if sentence not in details[query]] == []


def test_many_aggregates_fit_one_query(api: Api, cloud: dict[str, str]) -> None:
    """A join for each condition would keep PostgreSQL planning for minutes."""
    some = ",".join(new_uuid() for _ in range(200))
    each = "&".join(f"member_of=in:{A},{new_uuid()}" for _ in range(200))
    assert names(api, cloud, f"member_of=in:{B},{some}") == "small"
    assert names(api, cloud, each) == "big small"


def test_the_list_is_dated_by_its_newest_change(api: Api, cloud: dict[str, str]) -> None:
    """The microseconds of the tables are truncated, and the kinds of databases return dates in different forms."""
    newest = max(api.get(f"/resource_providers/{provider}").last_modified for provider in cloud)
    assert api.get("/resource_providers").last_modified == newest
