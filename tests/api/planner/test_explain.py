"""GET /planner/v1/explain: for each cause a cloud that has exactly that cause, and the explanation that names it."""

import logging
from pathlib import Path

import os_traits
import pytest
import yaml

from placement.api import allocation_candidates
from tests.api.test_bad_input import REFUSALS
from tests.clouds import SHARES, Provider, allocate, provider, trees
from tests.stored_clouds import stored

TRAITS = sorted(os_traits.get_traits())


def hosts(count: int, **inventories) -> list[Provider]:
    return [provider(f"host{number}", **inventories) for number in range(count)]


CASES = yaml.safe_load(Path(__file__).with_name("explain.yaml").read_text(encoding="utf-8"))


def explanation(api, query: str, **options) -> dict:
    response = api.get(f"/planner/v1/explain?{query}", **options)
    assert response.status_code == 200, response.text
    return response.get_json()


def key(condition: dict) -> tuple[str, str]:
    return condition["condition"], condition["value"]


def lessons(document: dict) -> list[dict]:
    """Return the hints, without that no single provider has an amount."""
    return [hint for hint in document["hints"] if hint["hint"] != "no_single_provider"]


def test_an_example_lacks_nothing_but_the_condition(api) -> None:
    """Of two NICs with too little left, the one without the trait could not serve in any case."""
    plain, right = provider("plain", SRIOV_NET_VF=3), provider("right", SRIOV_NET_VF=3, traits=["CUSTOM_A"])
    cloud = stored(api.app, provider("host", plain, right))
    asked = "/planner/v1/explain?resources=SRIOV_NET_VF:8&required=CUSTOM_A"
    found = api.get(asked, version="1.39").get_json()
    (near_miss,) = found["near_misses"]
    assert [row["uuid"] for row in near_miss["providers"]] == [cloud.providers["right"]]


@pytest.mark.parametrize("row", CASES, ids=[row["says"] for row in CASES])
def test_the_cause_is_named_also_in_a_line_of_the_log(api, row, caplog: pytest.LogCaptureFixture):
    """tests/unit/candidates compares what would help with brute force."""
    cloud = stored(api.app, *trees(row["cloud"]))
    uuids = {**cloud.providers, **cloud.aggregates}
    query, (kind, value) = row["query"].format(**uuids), row["cause"]
    document = explanation(api, query)
    assert key(document["cause"]) == (kind, value.format(**uuids))
    assert (document["trees_with_candidates"], document["complete"]) == (0, True)
    if "hint" in row:
        assert_hinted(document, row["hint"][0], row["hint"][1].format(**uuids))
    with caplog.at_level(logging.INFO, allocation_candidates.LOG.name):
        assert api.get(f"/allocation_candidates?{query}").json["allocation_requests"] == []
    (line,) = [record.getMessage() for record in caplog.records if record.name == allocation_candidates.LOG.name]
    assert line == f"There are no allocation candidates. {row.get('logged', document['cause']['message'])}"


def assert_hinted(document: dict, kind: str, value: str) -> None:
    """Traits and aggregates are not inherited in the tree, as newcomers believe."""
    (hint,) = lessons(document)
    assert (hint["hint"], hint["value"]) == (kind, value)
    if "provider" in hint:
        assert (hint["provider"]["name"], hint["found_on"]["name"], hint["trees"]) == ("numa", "host", 1)


def test_before_1_29_it_may_be_that_providers_of_a_tree_do_not_combine(api):
    stored(api.app, provider("host", provider("numa", VCPU=8), DISK_GB=10))
    document = explanation(api, "resources=VCPU:1,DISK_GB:1", version="1.28")
    assert key(document["cause"]) == ("one_provider_per_tree", "")
    assert ("one_provider_per_tree", "") in [key(near_miss) for near_miss in document["near_misses"]]


def test_a_request_that_finds_candidates_has_no_cause_and_is_counted(api):
    stored(api.app, *hosts(3, VCPU=8), provider("small", VCPU=1))
    document = explanation(api, "resources=VCPU:2")
    assert document["cause"] is None
    assert document["trees_with_candidates"] == 3
    assert document["near_misses"] == document["hints"] == []
    (demand,) = document["demands"]
    counted = {step["condition"]: (step["providers"], step["trees"]) for step in demand["steps"]}
    assert counted["inventory"] == (4, 4)
    assert counted["capacity"] == (3, 3)


def test_providers_that_show_a_near_miss_come_with_numbers(api):
    cloud = stored(api.app, *hosts(7, VCPU=8))
    for number in range(7):
        allocate(api, cloud.providers[f"host{number}"], {"VCPU": 2})
    (near_miss,) = explanation(api, "resources=VCPU:8")["near_misses"]
    assert near_miss["trees"] == 7
    assert len(near_miss["providers"]) == 5
    first = near_miss["providers"][0]
    assert cloud.name_of(first["uuid"]) == first["name"] == "host0"
    assert first["root_provider_uuid"] == first["uuid"]
    assert (first["asked"], first["free"]) == (8, 6)


def test_a_class_that_falls_short_in_more_than_one_way_comes_with_all_numbers(api):
    """A host's max_unit usually equals its total, so a larger amount violates both."""
    stored(api.app, *hosts(2, VCPU=8, MEMORY_MB=100))
    (near_miss,) = explanation(api, "resources=VCPU:9,MEMORY_MB:1")["near_misses"]
    assert key(near_miss) == ("amount", "VCPU:9")
    assert near_miss["trees"] == 2
    assert near_miss["largest"] == {"amount": 8, "providers": 2}
    assert near_miss["message"] == (
        "2 trees fail only this condition: 9 VCPU from one provider (unsuffixed group). "
        "The largest amount that can be had of one is 8: 2 providers have it."
    )
    shown = near_miss["providers"][0]
    assert (shown["asked"], shown["free"], shown["max_unit"]) == (9, 8, 8)


def test_who_shares_has_to_be_in_the_aggregate_that_is_asked_for(api):
    pool = provider("pool", traits=["MISC_SHARES_VIA_AGGREGATE"], aggregates=["S"], DISK_GB=100)
    cloud = stored(api.app, provider("host", aggregates=["S", "A"], VCPU=8), pool)
    document = explanation(api, "resources=VCPU:1,DISK_GB:10&member_of={A}".format(**cloud.aggregates))
    (hint,) = document["hints"]
    assert hint["hint"] == "sharing_provider_not_in_aggregate"
    assert (hint["provider"]["name"], hint["found_on"]["name"], hint["trees"]) == ("pool", "host", 1)


@pytest.mark.parametrize("aggregates", [(), ("S",)])
def test_who_shares_with_nobody_is_pointed_out(api, aggregates):
    """The requested resource exists, but no host is in an aggregate with its provider."""
    pool = provider("pool", traits=[SHARES], aggregates=aggregates, DISK_GB=100)
    stored(api.app, provider("own", VCPU=8, DISK_GB=5), provider("other", aggregates=["A"], VCPU=8), pool)
    (hint,) = explanation(api, "resources=VCPU:1,DISK_GB:10")["hints"]
    assert (hint["hint"], hint["value"], hint["trees"]) == ("sharing_provider_shares_with_nobody", "DISK_GB", 2)
    assert (hint["provider"]["name"], hint["found_on"]["name"]) == ("own", "pool")
    for query in ("resources=VCPU:1,DISK_GB:200", "resources=VCPU:9,DISK_GB:5"):
        assert lessons(explanation(api, query)) == []


@pytest.mark.parametrize("reserved", [0, 1], ids=["free", "full"])
def test_a_trait_of_some_devices_only_is_not_misplaced(api, reserved):
    """A host with GPUs of two models has the trait where it belongs, whatever else is lacking."""
    good = provider("good", traits=["HW_GPU_API_VULKAN"], PGPU={"total": 1, "reserved": reserved})
    stored(api.app, provider("host", good, provider("other", PGPU=1), VCPU=8))
    document = explanation(api, "resources=VCPU:99&resources_G=PGPU:1&required_G=HW_GPU_API_VULKAN")
    assert document["trees_with_candidates"] == 0
    assert lessons(document) == []


def test_a_missing_group_policy_is_explained_though_the_plain_request_is_refused(api):
    stored(api.app, *hosts(1, VCPU=8))
    query = "resources_A=VCPU:1&resources_B=VCPU:1"
    assert api.get(f"/allocation_candidates?{query}").status_code == 400
    document = explanation(api, query)
    assert document["trees_with_candidates"] == 1
    assert [hint["hint"] for hint in lessons(document)] == ["group_policy_missing"]


@pytest.mark.parametrize("query", [path.partition("?")[2] for _method, path, *_ in REFUSALS if "_candidates?" in path])
def test_what_the_plain_request_refuses_is_refused(api, query):
    response = api.get(f"/planner/v1/explain?{query}")
    assert response.status_code == 400
    plain = api.get(f"/allocation_candidates?{query}").get_json()["errors"][0]
    error = response.get_json()["errors"][0]
    assert (error["detail"], error["code"]) == (plain["detail"], plain["code"])


@pytest.mark.parametrize("version", ["1.0", "1.9"])
def test_without_a_useful_microversion_the_query_string_is_read_at_the_newest(api, version):
    stored(api.app, *hosts(1, VCPU=8))
    query = "resources_A=VCPU:9&required_A=in:HW_CPU_X86_AVX2,HW_CPU_X86_AVX"
    assert explanation(api, query, version=version)["cause"]


def test_a_query_string_is_read_at_the_microversion_of_the_header(api):
    assert api.get("/planner/v1/explain?resources_A=VCPU:9", version="1.32").status_code == 400
    assert api.get("/planner/v1/explain?resources=VCPU:9", version="1.40").status_code == 406


def test_hundreds_of_groups_of_many_kinds_are_explained(api):
    stored(api.app, *hosts(10, VCPU=8))
    groups = "".join(f"resources_{i}=VCPU:1&required_{i}=!{TRAITS[i]}&" for i in range(200))
    assert explanation(api, f"{groups}group_policy=none")["cause"]
