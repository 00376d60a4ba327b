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


@pytest.mark.parametrize("keeps_usage", [True, False], ids=["kept", "summed"])
def test_what_is_allocated_is_not_left(api: Api, cloud: dict[str, str], keeps_usage: bool) -> None:
    """Usage is summed if the triggers that keep it are missing."""
    api.app.extensions["placement"].database.keeps_usage = keeps_usage
    by_name = {name: uuid for uuid, name in cloud.items()}
    claimed(api, {by_name["big"]: {"VCPU": 3}})
    claimed(api, {by_name["big"]: {"VCPU": 3}})
    assert names(api, cloud, "resources=VCPU:2") == "big small"
    assert names(api, cloud, "resources=VCPU:3") == ""


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
