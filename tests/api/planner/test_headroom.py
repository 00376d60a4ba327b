"""/planner/v1/headroom: the numbers for small clouds, in the documented form, and refusals."""

import pytest

from tests.api.conftest import Api
from tests.clouds import Cloud, allocate, provider
from tests.stored_clouds import stored

PATH = "/planner/v1/headroom"
UNKNOWN = "ffffffff-0000-4000-8000-000000000000"


def gpu_host(name: str):
    """Return a host of two NUMA nodes with CPUs and two GPUs each."""
    return provider(
        name,
        *[
            provider(
                f"{name}-numa{node}",
                *[provider(f"{name}-gpu{node}{gpu}", PGPU=1) for gpu in range(2)],
                VCPU=8,
                traits=["HW_NUMA_ROOT"],
            )
            for node in range(2)
        ],
        DISK_GB=100,
        aggregates=["GPU"],
    )


@pytest.fixture
def cloud(api: Api) -> Cloud:
    """Three plain hosts, one without free CPUs, one without free memory; two with GPUs."""
    built = stored(
        api.app,
        *[provider(f"host{number}", VCPU=16, MEMORY_MB=4096, aggregates=["plain"]) for number in range(3)],
        gpu_host("gpu0"),
        gpu_host("gpu1"),
    )
    allocate(api, built.providers["host1"], {"VCPU": 15})
    allocate(api, built.providers["host2"], {"MEMORY_MB": 4000})
    return built


def ask(api: Api, body: dict) -> dict:
    answer = api.post(PATH, body)
    assert answer.status_code == 200, answer.text
    return answer.get_json()["headroom"]


def fits(api: Api, query: str, **body) -> int:
    found = ask(api, {"requests": {"it": query}, **body})["it"]
    assert found["complete"]
    assert found["fits"] == found["at_most"]
    return found["fits"]


def test_a_query_string_has_its_headroom(api: Api, cloud: Cloud) -> None:
    found = api.get(f"{PATH}?resources=VCPU:2,MEMORY_MB:1024").get_json()
    assert (found["fits"], found["trees_with_room"], found["trees_without_room"]) == (4, 1, 2)
    assert [tree["uuid"] for tree in found["trees"]] == [cloud.providers["host0"]]
    assert found["message"] == "Of 2 trees without room 1 lacks MEMORY_MB, 1 VCPU."
    assert found["stranded"] == {"VCPU": 1 + 16, "MEMORY_MB": 4096 + 96}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param({"paths": {"numa/0/VCPU": 5}}, 4, id="one for each NUMA node"),
        pytest.param({"paths": {"numa/0/VCPU": 5, "numa/1/VCPU": 5}}, 2, id="one for each host"),
        pytest.param({"tree": {"numa": {"0": {"VCPU": 4}, "1": {"VCPU": 4}}}}, 4, id="tree"),
        pytest.param({"tree": {"numa": {"0": {"VCPU": 4}, "1": {"VCPU": 4}}}, "distinct": True}, 4, id="distinct"),
        pytest.param({"paths": {"numa/0/VCPU": 5}, "init_containers": [{"numa/0/VCPU": 8}]}, 4, id="before it"),
        pytest.param({"paths": {"numa/0/VCPU": 5}, "containers": [{"numa/0/VCPU": 4}]}, 2, id="beside it"),
        pytest.param({"paths": {"numa/0/VCPU": 9}}, 0, id="none"),
        pytest.param(
            {"pod": {"spec": {"containers": [{"resources": {"requests": {"nvidia.com/gpu": 2}}}]}}}, 4, id="pod"
        ),
    ],
)
def test_what_is_written_in_other_words_is_counted(api: Api, cloud: Cloud, body: dict, expected: int) -> None:
    assert cloud
    found = ask(api, {"requests": {"it": body}, "per": "tree"})["it"]
    assert (found["fits"], found["at_most"], found["complete"]) == (expected, expected, True)
    assert sum(tree["fits"] for tree in found["trees"]) == expected


def test_rules_are_kept_in_trees_that_are_supposed(api: Api, cloud: Cloud) -> None:
    """A pair in one NUMA node: two for each host, including hypothetical ones, and none in avoided trees."""
    body = {"groups": {"_G": {"resources": {"PGPU": 1}, "count": 2}}, "within": [{"groups": ["_G"], "level": "numa"}]}
    consumer = allocate(api, cloud.providers["gpu0-gpu00"], {"PGPU": 1})
    more = [{"like": cloud.providers["gpu0"], "count": 3}]
    found = ask(api, {"requests": {"it": body}, "with": more})["it"]
    assert (found["fits"], found["complete"]) == (3 + 6, True)
    assert [(model["fits"], model["complete"]) for model in found["one_more"]] == [(2, True)]
    assert ask(api, {"requests": {"it": body}, "released": [consumer]})["it"]["fits"] == 4
    avoiding = {**body, "avoid": {"trees": [cloud.providers["gpu1"]]}}
    found = ask(api, {"requests": {"it": avoiding}, "per": "tree"})["it"]
    assert (found["fits"], [tree["name"] for tree in found["trees"]]) == (1, ["gpu0"])
    avoiding_all = {**body, "avoid": {"trees": [cloud.providers["gpu0"], cloud.providers["gpu1"]]}}
    found = ask(api, {"requests": {"it": avoiding_all}, "per": "tree"})["it"]
    assert (found["fits"], found["trees"], found["one_more"]) == (0, [], [])


def test_hosts_that_are_alike_differ_by_what_is_asked_of_them(api: Api) -> None:
    """Rules are checked on one host of a kind, except for aggregates, trees, released allocations and held places."""
    built = stored(api.app, *[gpu_host(f"host{number}") for number in range(4)], gpu_host("other"))
    pair = {"groups": {"_G": {"resources": {"PGPU": 1}, "count": 2}}, "within": [{"groups": ["_G"], "level": "numa"}]}
    consumers = [allocate(api, built.providers[f"host{number}-gpu00"], {"PGPU": 1}) for number in range(3)]

    def found(body: dict, **more: object) -> dict[str, int]:
        room = ask(api, {"requests": {"it": body}, "per": "tree", **more})["it"]
        assert room["complete"]
        return {tree["name"]: tree["fits"] for tree in room["trees"]}

    alike = {"host0": 1, "host1": 1, "host2": 1}
    assert found(pair) == {**alike, "host3": 2, "other": 2}
    assert found(pair, released=[consumers[1]]) == {**alike, "host1": 2, "host3": 2, "other": 2}
    ask_in = {**pair["groups"]["_G"], "in_tree": built.providers["host1"]}
    assert found({**pair, "groups": {"_G": ask_in}}) == {"host1": 1}
    avoiding = {**pair, "avoid": {"trees": [built.providers["host0"], built.providers["host3"]]}}
    assert found(avoiding) == {"host1": 1, "host2": 1, "other": 2}


def test_projects_are_told_what_their_shares_leave_them(api: Api) -> None:
    """Each of two projects is entitled to 24 of 48 CPUs; ann has 20 of hers, bob 12 of his."""
    hosts = stored(api.app, *[provider(f"host{number}", VCPU=16, PGPU=1) for number in range(3)]).providers
    allocate(api, hosts["host0"], {"VCPU": 16}, project="ann")
    allocate(api, hosts["host1"], {"VCPU": 4}, project="ann")
    allocate(api, hosts["host2"], {"VCPU": 12}, project="bob")
    plain, planned = "resources=VCPU:2", {"groups": {"": {"resources": {"VCPU": 1}}, "_G": {"resources": {"PGPU": 1}}}}
    found = ask(api, {"requests": {"plain": plain, "planned": planned}, "per": "share"})
    assert found["plain"]["fits"] == 8
    shares = {name: [(one["project_id"], one["fits"]) for one in room["shares"]] for name, room in found.items()}
    assert shares == {"plain": [("bob", 6), ("ann", 2)], "planned": [("ann", 2), ("bob", 2)]}
    first = ask(api, {"requests": {"plain": plain}, "per": "share", "limit": 1})["plain"]["shares"]
    assert first == [{"path": "root/default/bob", "project_id": "bob", "fits": 6, "at_most": 6, "complete": True}]


def test_one_more_host_of_a_model_is_told(api: Api, cloud: Cloud) -> None:
    assert cloud
    found = ask(api, {"requests": {"it": "resources=VCPU:8"}})["it"]
    models = {(model["like"]["name"], model["trees"], model["fits"]) for model in found["one_more"]}
    assert models == {("host0", 3, 2), ("gpu0", 2, 2)}


def test_changes_are_supposed_and_not_written(api: Api, cloud: Cloud) -> None:
    query = "resources=VCPU:4"
    assert fits(api, query) == 16
    assert fits(api, query, without=[cloud.providers["host0"]]) == 12
    assert fits(api, query, without=[cloud.aggregates["GPU"]]) == 8
    assert fits(api, query, without=[cloud.providers["gpu0-gpu00"]]) == 12
    assert fits(api, query, **{"with": [{"like": cloud.providers["host1"], "count": 3}]}) == 28
    consumer = allocate(api, cloud.providers["host0"], {"VCPU": 8})
    assert fits(api, query) == 14
    assert fits(api, query, released=[consumer]) == 16
    assert fits(api, query, released=[consumer.upper().replace("-", "")]) == 16
    assert fits(api, query) == 14


def test_a_mix_has_a_number_of_its_own(api: Api, cloud: Cloud) -> None:
    """GPUs limit the total: every second copy takes one of 8, on hosts with room for 8 times 4 CPUs in all."""
    assert cloud
    requests = {"small": "resources=VCPU:1,MEMORY_MB:1", "gpu": "resources=VCPU:1,PGPU:1"}
    found = api.post(PATH, {"requests": requests, "mix": {"small": 1, "gpu": 1}}).get_json()
    assert found["mix"] == {"fits": 17, "at_most": 17, "complete": True}


def test_what_no_single_provider_has_is_said_first_with_how_to_ask(api: Api) -> None:
    """Eight GPUs are eight providers; whoever does as told finds them."""
    gpus = [[provider(f"{name}-gpu{number}", PGPU=1) for number in range(8)] for name in ("a", "b")]
    stored(api.app, provider("a", *gpus[0], VCPU=96), provider("b", *gpus[1], VCPU=96), provider("c", VCPU=96))
    query = "resources=PGPU:8,VCPU:96"
    told = (
        "No provider could give 8 PGPU, even if it were empty: the largest has 1 PGPU. 2 trees have as much free on "
        "several providers: ask for it in 8 groups, resources_1=PGPU:1&resources_2=PGPU:1 and so on, or with "
        '"count": 8 in a planner request.'
    )
    assert api.get(f"/planner/v1/headroom?{query}").json["message"].startswith(told)
    hint = api.get(f"/planner/v1/explain?{query}").json["hints"][0]
    assert (hint["hint"], hint["message"], hint["trees"]) == ("no_single_provider", told, 2)
    groups = {"": {"resources": {"VCPU": 96}}, "_GPU": {"resources": {"PGPU": 1}, "count": 8}}
    assert len(api.post("/planner/v1/candidates", {"groups": groups}).json["allocation_requests"]) == 2
