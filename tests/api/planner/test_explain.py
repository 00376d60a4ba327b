"""GET /planner/v1/explain: for each cause a cloud that has exactly that cause, and the explanation that names it."""

import uuid
from dataclasses import dataclass, field

import os_traits
import pytest

from tests.clouds import SHARES, Cloud, Provider, allocate, provider
from tests.stored_clouds import stored

TRAITS = sorted(os_traits.get_traits())
UNKNOWN = "ffffffff-0000-4000-8000-000000000000"


@dataclass(frozen=True)
class Expected:
    """A cloud, a query without candidates there, and the expected explanation.

    In the query, ``{name}`` stands for the uuid of a provider or aggregate; ``fails_only`` are near misses with the
    number of trees in which each would help.
    """

    roots: list[Provider]
    query: str
    cause: tuple[str, str]
    fails_only: dict[tuple[str, str], int] = field(default_factory=dict)
    claims: dict[str, dict[str, int]] = field(default_factory=dict)


def hosts(count: int, **inventories) -> list[Provider]:
    return [provider(f"host{number}", **inventories) for number in range(count)]


def numa_host(name: str, **devices) -> Provider:
    """A host with two NUMA nodes, the second of which has devices."""
    return provider(
        name, provider(f"{name}-numa0", VCPU=4), provider(f"{name}-numa1", provider(f"{name}-dev", **devices), VCPU=4)
    )


CASES = {
    "no inventory": Expected(
        hosts(2, VCPU=8), "resources=VCPU:1,DISK_GB:1", ("inventory", "DISK_GB"), {("resource", "DISK_GB"): 2}
    ),
    "full": Expected(
        hosts(3, VCPU=8),
        "resources=VCPU:4",
        ("capacity", "VCPU:4"),
        {("capacity", "VCPU:4"): 3},
        claims={f"host{number}": {"VCPU": 5 + number} for number in range(3)},
    ),
    "not in steps": Expected(
        hosts(2, VCPU={"total": 8, "step_size": 4}),
        "resources=VCPU:6",
        ("step_size", "VCPU:6"),
        {("step_size", "VCPU:6"): 2},
    ),
    "no trait": Expected(
        [provider("host0", VCPU=8, traits=["HW_CPU_X86_AVX"]), provider("host1", VCPU=1, traits=["HW_CPU_X86_AVX2"])],
        "resources_A=VCPU:4&required_A=HW_CPU_X86_AVX2",
        ("required", "HW_CPU_X86_AVX2"),
        {("required", "HW_CPU_X86_AVX2"): 1, ("amount", "VCPU:4"): 1},
    ),
    "aggregate": Expected(
        [provider("host0", VCPU=8, aggregates=["A"]), provider("host1", VCPU=1, aggregates=["B"])],
        "resources=VCPU:4&member_of={B}",
        ("member_of", "{B}"),
        {("amount", "VCPU:4"): 1, ("member_of", "{B}"): 1},
    ),
    "in_tree": Expected(
        [provider("host0", VCPU=2), provider("host1", VCPU=8), provider("host2", VCPU=8)],
        "resources=VCPU:4&in_tree={host0}",
        ("in_tree", "{host0}"),
        {("in_tree", "{host0}"): 2, ("amount", "VCPU:4"): 1},
    ),
    "groups in different trees": Expected(
        [provider("host0", VCPU=8), provider("host1", PGPU=1), provider("host2", PGPU=1)],
        "resources_A=VCPU:1&resources_B=PGPU:1&group_policy=none",
        ("every_group", ""),
        {("group", "_A"): 2, ("group", "_B"): 1},
    ),
    "trait of the root": Expected(
        hosts(2, VCPU=8),
        "resources=VCPU:1&root_required=HW_CPU_X86_AVX2",
        ("root_required", "HW_CPU_X86_AVX2"),
        {("root_required", "HW_CPU_X86_AVX2"): 2},
    ),
    "trait nowhere in the tree": Expected(
        [provider("host0", VCPU=8), provider("other", traits=["HW_CPU_X86_AVX2"])],
        "resources=VCPU:1&required=HW_CPU_X86_AVX2",
        ("required", "HW_CPU_X86_AVX2"),
        {("required", "HW_CPU_X86_AVX2"): 1},
    ),
    "trait beside the resources": Expected(
        [provider("host", provider("numa", VCPU=8), traits=["HW_CPU_X86_AVX2"])],
        "resources=VCPU:1&required=HW_CPU_X86_AVX2",
        ("trait_placement", "HW_CPU_X86_AVX2"),
        {("required", "HW_CPU_X86_AVX2"): 1, ("trait_placement", "HW_CPU_X86_AVX2"): 1},
    ),
    "too few providers for isolation": Expected(
        hosts(2, VCPU=8),
        "resources_A=VCPU:1&resources_B=VCPU:1&group_policy=isolate",
        ("group_policy", "isolate"),
        {("group_policy", "isolate"): 2},
    ),
    "apart in the tree": Expected(
        [numa_host("host", PGPU=1)],
        "resources_A=VCPU:4&resources_B=PGPU:1&group_policy=none&same_subtree=_A,_B",
        ("same_subtree", "_A,_B"),
        {("same_subtree", "_A,_B"): 1, ("capacity", "VCPU:4"): 1},
        claims={"host-numa1": {"VCPU": 2}},
    ),
    "too much together": Expected(
        hosts(2, VCPU=8),
        "resources_A=VCPU:5&resources_B=VCPU:5&group_policy=none",
        ("combined_capacity", "VCPU"),
        {("combined_capacity", "VCPU"): 2},
    ),
}


def explanation(api, query: str, **options) -> dict:
    response = api.get(f"/planner/v1/explain?{query}", **options)
    assert response.status_code == 200, response.text
    return response.get_json()


def key(condition: dict) -> tuple[str, str]:
    return condition["condition"], condition["value"]


def made(api, expected: Expected) -> tuple[Cloud, dict[str, str]]:
    cloud = stored(api.app, *expected.roots)
    for name, resources in expected.claims.items():
        allocate(api.call, cloud.providers[name], resources)
    return cloud, {**cloud.providers, **cloud.aggregates}


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


@pytest.mark.parametrize("name", CASES)
def test_the_cause_is_named_with_what_would_help(api, name):
    expected = CASES[name]
    _cloud, uuids = made(api, expected)
    query = expected.query.format(**uuids)
    assert api.get(f"/allocation_candidates?{query}").get_json()["allocation_requests"] == []
    document = explanation(api, query)
    sort, value = expected.cause
    assert key(document["cause"]) == (sort, value.format(**uuids))
    assert document["cause"]["message"].endswith(".")
    assert document["trees_with_candidates"] == 0
    assert document["complete"]
    counted = {key(near_miss): near_miss["trees"] for near_miss in document["near_misses"]}
    assert counted == {
        (sort, value.format(**uuids)): trees for (sort, value), trees in expected.fails_only.items() if trees
    }


def test_before_1_29_it_may_be_that_providers_of_a_tree_do_not_combine(api):
    stored(api.app, provider("host", provider("numa", VCPU=8), DISK_GB=10))
    document = explanation(api, "resources=VCPU:1,DISK_GB:1", version="1.28")
    assert key(document["cause"]) == ("one_provider_per_tree", "")
    assert ("one_provider_per_tree", "") in [key(near_miss) for near_miss in document["near_misses"]]


def test_a_group_that_only_forbids_is_the_cause(api):
    stored(api.app, provider("host", VCPU=8))
    query = "resources_A=VCPU:1&required_B=!HW_NUMA_ROOT&group_policy=none&same_subtree=_A,_B"
    assert key(explanation(api, query)["cause"]) == ("empty_group", "")


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
        allocate(api.call, cloud.providers[f"host{number}"], {"VCPU": 2})
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


@pytest.mark.parametrize(
    ("query", "hint"),
    [
        ("resources=PGPU:1", ("no_provider_has_class", "PGPU")),
        ("resources=VCPU:1&required=HW_GPU_API_VULKAN", ("no_provider_has_trait", "HW_GPU_API_VULKAN")),
        ("resources=VCPU:1&root_required=HW_GPU_API_VULKAN", ("no_provider_has_trait", "HW_GPU_API_VULKAN")),
        (f"resources=VCPU:1&member_of={UNKNOWN}", ("no_provider_in_aggregate", UNKNOWN)),
        (f"resources=VCPU:1&in_tree={UNKNOWN}", ("no_such_tree", UNKNOWN)),
        ("resources=VCPU:1&required=STORAGE_DISK_SSD", ("trait_on_another_provider", "STORAGE_DISK_SSD")),
        ("resources_A=VCPU:1&required_A=STORAGE_DISK_SSD", ("trait_on_another_provider", "STORAGE_DISK_SSD")),
        ("resources_A=VCPU:1&member_of_A={A}", ("aggregate_does_not_span", "{A}")),
        ("resources_A=VCPU:1&resources_B=VCPU:99", ("group_policy_missing", "none")),
    ],
)
def test_what_newcomers_get_wrong_is_pointed_out(api, query, hint):
    """Traits and aggregates are not inherited in the tree; a group_policy is mandatory (both are common questions)."""
    cloud = stored(api.app, provider("host", provider("numa", VCPU=8), traits=["STORAGE_DISK_SSD"], aggregates=["A"]))
    document = explanation(api, query.format(**cloud.aggregates))
    sort, value = hint
    found = {(each["hint"], each["value"]): each for each in lessons(document)}
    assert list(found) == [(sort, value.format(**cloud.aggregates))]
    (only,) = found.values()
    if "provider" in only:
        assert (only["provider"]["name"], only["found_on"]["name"], only["trees"]) == ("numa", "host", 1)


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


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("resources=CUSTOM_NOTHING:1", "No such resource class CUSTOM_NOTHING"),
        ("resources=VCPU:1&required=CUSTOM_NOTHING", "No such trait"),
        ("resources=VCPU:x", "positive integer amount"),
        ("", "At least one request group"),
        ("nonsense=1", "does not match any of the regexes"),
    ],
)
def test_what_the_plain_request_refuses_is_refused(api, query, text):
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


@pytest.mark.parametrize(
    "query",
    [
        "resources_A=VCPU:1&required_A=" + ",".join(TRAITS[:300]),
        "resources=VCPU:1&required=" + ",".join(TRAITS[:300]),
        "resources=VCPU:1&root_required=" + ",".join(TRAITS[:300]),
        "resources=VCPU:1" + "".join(f"&member_of={uuid.UUID(int=number)}" for number in range(200)),
        "".join(f"resources_{i}=VCPU:{i % 8 + 1}&" for i in range(200)) + "group_policy=isolate",
        "".join(f"resources_{i}=VCPU:1&required_{i}=!{TRAITS[i]}&" for i in range(200)) + "group_policy=none",
    ],
    ids=["traits", "loose traits", "root traits", "aggregates", "groups", "groups of many kinds"],
)
def test_requests_of_absurd_size_are_explained(api, query):
    stored(api.app, *hosts(10, VCPU=8))
    assert explanation(api, query)["cause"]
