"""Repeated GET /allocation_candidates: whatever is cached, the answer is that of a search, however much has changed."""

import random
import uuid
from collections.abc import Callable
from contextlib import nullcontext
from random import Random
from typing import Any

import pytest
from flask import Flask

from placement.candidates.tree_order import BLOCK
from tests.api.conftest import Api, stop_background, with_limits, with_settings
from tests.api.test_allocations import inventories, reshape
from tests.api.test_statement_counts import statements
from tests.bench.cases import device_query, pair_query
from tests.claims import ask, change, generation, held, make_provider, proposed
from tests.clouds import SHARES, Cloud, Provider, allocate, provider
from tests.planner_clouds import make_names, random_hosts
from tests.planner_hosts import CANDIDATES
from tests.small_clouds import Cloud as SmallCloud
from tests.small_clouds import load
from tests.store.rows import VCPU, by_request, run
from tests.stored_clouds import stored

HOSTS = 6
FAST, NUMA, GOLD, SILVER = "CUSTOM_FAST", "HW_NUMA_ROOT", "CUSTOM_GOLD", "CUSTOM_SILVER"
BRASS, LOCK = "CUSTOM_BRASS", "CUSTOM_DEVICE_LOCK"
PLAIN = "resources=VCPU:1,MEMORY_MB:10&limit=1000"
WITHOUT_LIMIT = "resources=VCPU:1,MEMORY_MB:10"
QUERIES = (
    PLAIN,
    WITHOUT_LIMIT,
    "resources=MEMORY_MB:10&resources_N=VCPU:1&required_N=HW_NUMA_ROOT",
    "resources=VCPU:2&limit=3",
    "resources=MEMORY_MB:10&resources_N=VCPU:1&required_N=HW_NUMA_ROOT&limit=4",
    "resources_A=VCPU:1&resources_B=VCPU:1&group_policy=isolate&limit=1000",
    f"resources=VCPU:1&required=!{FAST}&limit=5",
    f"resources={GOLD}:1&limit=1000",
    "resources=VCPU:1&member_of={a}&limit=1000",
    "resources=VCPU:1&member_of=!{a}&limit=1000",
    "resources=VCPU:1&member_of=00000000-1111-4222-8333-444444444444&limit=1000",
)


def host(number: int) -> Provider:
    numa = [provider(f"host{number}-numa{node}", VCPU=8, traits=[NUMA]) for node in range(2)]
    traits, extra = ([FAST] if number % 3 == 0 else []), ({GOLD: 5} if number % 2 else {})
    return provider(
        f"host{number}", *numa, MEMORY_MB=1000, traits=traits, aggregates=["a"] if number < 2 else [], **extra
    )


@pytest.fixture
def cloud(api: Api) -> Cloud:
    """Some hosts of two NUMA nodes, and an empty provider."""
    made = stored(api.app, *[host(number) for number in range(HOSTS)], provider("other", VCPU=4, MEMORY_MB=100))
    for name in (SILVER, GOLD, LOCK):
        api.put(f"/resource_classes/{name}")
    return made


def answer(api: Api, query: str) -> tuple[int, Any]:
    random.seed(1)
    response = api.get(f"/allocation_candidates?{query}")
    document = response.json
    for error in document.get("errors", []):
        del error["request_id"]
    return response.status_code, document


def assert_same(api: Api, queries: list[str]) -> None:
    """Compare answers to repeated requests with those of a search."""
    for query in queries:
        searched = without_cache(api, query)
        assert answer(api, query) == searched


def without_cache(api: Api, query: str) -> tuple[int, Any]:
    """Return the answer of a search that finds nothing in the cache, which is as it was afterwards."""
    kept, api.database.cloud_cache = api.database.cloud_cache, None
    searched = answer(api, query)
    api.database.cloud_cache = kept
    return searched


def is_kept(api: Api, query: str) -> bool:
    """Ask, and tell whether the answer was put together without reading any host."""
    with statements(api.app) as sent:
        answer(api, query)
    return not [statement for statement in sent if "inventories.total" in statement]


class Writes:
    """Everything that may alter an answer. A write may be refused."""

    def __init__(self, api: Api, cloud: Cloud, choice: Random) -> None:
        self._api = api
        self._choice = choice
        self._uuids = list(cloud.providers.values())
        self._aggregates = list(cloud.aggregates.values())
        self._consumers: list[str] = []

    def some(self) -> None:
        writes = [self.claim] * 4 + [self.release, self.stock, self.drop_stock]
        writes += [self.traits, self.aggregates, self.rename, self.come_and_go, self.move, self.rename_class]
        writes += [self.delete_names, self.reshape, self.by_sql]
        self._choice.choice(writes)(self._choice.choice(self._uuids))

    def claim(self, _one: str) -> None:
        found = self._api.get(f"/allocation_candidates?{PLAIN}").json["allocation_requests"]
        if found:
            self._consumers.append(str(uuid.uuid4()))
            self._api.put(f"/allocations/{self._consumers[-1]}", proposed(self._choice.choice(found)))

    def release(self, _one: str) -> None:
        if self._consumers:
            self._api.delete(f"/allocations/{self._consumers.pop()}")

    def stock(self, one: str) -> None:
        name, total = self._choice.choice(["VCPU", "MEMORY_MB", GOLD, SILVER, LOCK]), self._choice.randint(1, 900)
        body = {"resource_provider_generation": generation(self._api, one), "total": total}
        if self._api.put(f"/resource_providers/{one}/inventories/{name}", body).status_code == 404:
            self._api.post(f"/resource_providers/{one}/inventories", {**body, "resource_class": name})

    def drop_stock(self, one: str) -> None:
        self._api.delete(f"/resource_providers/{one}/inventories/{self._choice.choice(['VCPU', GOLD, LOCK])}")

    def traits(self, one: str) -> None:
        self._api.put("/traits/CUSTOM_NEW")
        traits = self._choice.sample([FAST, NUMA, "CUSTOM_NEW"], self._choice.randint(0, 3))
        body = {"resource_provider_generation": generation(self._api, one), "traits": traits}
        self._api.put(f"/resource_providers/{one}/traits", body)

    def aggregates(self, one: str) -> None:
        chosen = self._choice.sample(self._aggregates, self._choice.randint(0, len(self._aggregates)))
        body = {"resource_provider_generation": generation(self._api, one), "aggregates": chosen}
        self._api.put(f"/resource_providers/{one}/aggregates", body)

    def rename(self, one: str) -> None:
        parent = self._api.get(f"/resource_providers/{one}").json["parent_provider_uuid"]
        self._api.put(f"/resource_providers/{one}", {"name": str(uuid.uuid4()), "parent_provider_uuid": parent})

    def come_and_go(self, one: str) -> None:
        body = {"name": str(uuid.uuid4()), "uuid": str(uuid.uuid4()), "parent_provider_uuid": one}
        self._api.post("/resource_providers", body)
        self.stock(body["uuid"])
        if self._choice.random() < 0.5:
            self._api.delete(f"/resource_providers/{body['uuid']}")

    def move(self, one: str) -> None:
        shown = self._api.get(f"/resource_providers/{one}").json
        parent = self._choice.choice([None, *self._uuids])
        self._api.put(f"/resource_providers/{one}", {"name": shown["name"], "parent_provider_uuid": parent})

    def rename_class(self, _one: str) -> None:
        """Give one class the name of another for a while."""
        names = [(GOLD, BRASS), (SILVER, GOLD), (GOLD, SILVER), (BRASS, GOLD)]
        for before, after in names:
            self._api.put(f"/resource_classes/{before}", {"name": after}, version="1.6")
            assert_same(self._api, [PLAIN, f"resources={GOLD}:1&limit=1000"])

    def delete_names(self, _one: str) -> None:
        """Delete a class and a trait, so that others may get their ids."""
        self._api.delete(f"/resource_classes/{SILVER}")
        self._api.delete("/traits/CUSTOM_NEW")
        self._api.put("/traits/CUSTOM_NEWER")
        self._api.put(f"/resource_classes/{SILVER}")

    def reshape(self, one: str) -> None:
        if not held(self._api, one):
            reshape(self._api, {one: inventories(generation(self._api, one), VCPU=self._choice.randint(1, 99))})

    def by_sql(self, _one: str) -> None:
        with self._api.database.writer.begin() as connection:
            connection.exec_driver_sql("UPDATE inventories SET reserved = 1 - reserved WHERE id > 3 AND reserved < 2")


LONGER = [pytest.mark.exhaustive, pytest.mark.any_database]


@pytest.mark.parametrize(("seed", "steps"), [(1, 15), *[pytest.param(n, 40, marks=LONGER) for n in range(6, 12)]])
def test_an_answer_is_that_of_a_search_whatever_was_written_between(
    api: Api, cloud: Cloud, seed: int, steps: int
) -> None:
    choice = Random(seed)
    writes = Writes(api, cloud, choice)
    queries = [query.format(**cloud.aggregates) for query in QUERIES]
    for _ in range(steps):
        assert_same(api, choice.sample(queries, 3))
        writes.some()
    assert_same(api, queries)
    assert_same(api, queries)
    assert is_kept(api, PLAIN)


def test_a_trait_that_takes_the_name_of_another_is_what_is_asked_about(api: Api, cloud: Cloud) -> None:
    """No row of a tree mentions it, and trees without a text before have one now."""
    query = f"resources=VCPU:1&required=!{FAST}&limit=1000"
    api.put("/traits/CUSTOM_NEW")
    for _ in range(2):
        assert_same(api, [query])
    with api.database.writer.begin() as connection:
        for before, after in ((FAST, "CUSTOM_OLD"), ("CUSTOM_NEW", FAST)):
            connection.exec_driver_sql(f"UPDATE traits SET name = '{after}' WHERE name = '{before}'")
    assert_same(api, [query])
    assert len(answer(api, query)[1]["allocation_requests"]) == 2 * HOSTS + 1


def test_where_others_share_with_a_host_candidates_are_searched_for(api: Api, cloud: Cloud) -> None:
    pool = cloud.providers["other"]
    query = f"resources=VCPU:1,{SILVER}:1&limit=1000"
    share(api, pool, [*cloud.aggregates.values()])
    for traits in ([], [SHARES], []):
        change(api, pool, "traits", traits)
        for _ in range(2):
            assert_same(api, [query, PLAIN])


def share(api: Api, pool: str, aggregates: list[str]) -> None:
    ask(api, "POST", f"/resource_providers/{pool}/inventories", body={"resource_class": SILVER, "total": 9})
    change(api, pool, "aggregates", aggregates)


def test_a_pool_that_shares_nothing_of_a_request_does_not_concern_it(api: Api, cloud: Cloud) -> None:
    pool = make_provider(api)
    share(api, pool, [*cloud.aggregates.values()])
    change(api, pool, "traits", [SHARES])
    for _ in range(3):
        assert_same(api, [PLAIN, f"resources=VCPU:1,{SILVER}:1&limit=1000"])
    assert is_kept(api, PLAIN)


def test_places_that_a_lock_holds_back_are_left_out_of_what_is_kept(api: Api, cloud: Cloud) -> None:
    one = cloud.providers["host3"]
    query = "resources=MEMORY_MB:10&limit=1000"
    for _ in range(2):
        assert_same(api, [query])
    ask(api, "POST", f"/resource_providers/{one}/inventories", body={"resource_class": LOCK, "total": 1})
    assert_same(api, [query])
    allocate(api, one, {LOCK: 1})
    for _ in range(2):
        assert_same(api, [query])
    assert is_kept(api, query)


@pytest.mark.parametrize(
    "options",
    [
        {"allocation_candidates_generation_strategy": "depth-first"},
        {"max_allocation_candidates": 3},
        {"randomize_allocation_candidates": True},
    ],
    ids=str,
)
def test_options_of_the_operator_hold_as_before(api: Api, cloud: Cloud, options: dict[str, Any]) -> None:
    api = with_settings(api.app, options=options)
    stop_background(api.app)
    for _ in range(3):
        assert_same(api, [query.format(**cloud.aggregates) for query in QUERIES])
        allocate(api, cloud.providers["host1-numa0"], {"VCPU": 1})


@pytest.mark.parametrize("limits", [{"steps_per_request": 20}, {"steps_per_tree": 1}, {"placements": 2}], ids=str)
def test_a_search_that_would_reach_its_limits_is_made(api: Api, cloud: Cloud, limits: dict[str, int]) -> None:
    with_limits(api, **limits)
    for _ in range(3):
        assert_same(api, [PLAIN, WITHOUT_LIMIT])
    assert not is_kept(api, PLAIN)


MANY_HOSTS = BLOCK + 100
PLACES = "resource_provider_id BETWEEN {first} AND {last} AND resource_provider_id % 3 <> {rest}"
HAD = "resource_provider_id, resource_class_id"
USED = f"{HAD}, consumer_id, used"
BURSTS = (
    f"UPDATE inventories SET reserved = resource_provider_id * 7 % 11 WHERE {PLACES}",
    f"UPDATE inventories SET reserved = 5 WHERE {PLACES}",
    f"DELETE FROM inventories WHERE resource_class_id = {VCPU} AND {PLACES} AND reserved > 8",
    f"INSERT INTO allocations ({USED}) SELECT {HAD}, 'c', 1 + resource_provider_id % 4 FROM inventories WHERE {PLACES}",
    f"DELETE FROM allocations WHERE {PLACES}",
    "UPDATE resource_providers SET root_provider_id = 1, parent_provider_id = 1 WHERE id BETWEEN {last} AND {last} + 9",
)


def test_after_hundreds_of_changes_at_once_answers_are_those_of_a_new_worker(
    api: Api, request: pytest.FixtureRequest
) -> None:
    """By SQL, in the name of a request or of nobody."""
    stored(api.app, *[provider(f"host{number}", VCPU=64, MEMORY_MB=4096) for number in range(MANY_HOSTS)])
    choice = Random(request.config.getoption("--seed"))
    for _ in range(40 if request.config.getoption("--deep") else 4):
        fresh = with_settings(api.app)
        for query in (f"{WITHOUT_LIMIT}&limit=10", f"{WITHOUT_LIMIT}&limit={BLOCK + 50}", "resources=VCPU:3&limit=20"):
            assert answer(api, query) == answer(fresh, query)
        fresh.database.dispose()
        first = choice.randint(2, 300)
        places = {"first": first, "last": first + 450, "rest": choice.randrange(3)}
        with by_request() if choice.random() < 0.7 else nullcontext(), api.database.writer.begin() as connection:
            run(connection, *[burst.format(**places) for burst in choice.sample(BURSTS, 2)])


PROFILES = (
    "{fit: {resources: {VCPU: {type: MostAllocated}}}, compactness: {}}",
    "{fit: {}, compactness: {}}",
    "{fit: {resources: {PGPU: {type: MostAllocated}}}, compactness: {weight: 3}}",
    "{fit: {}, proportional: {reserve: {PGPU: {VCPU: 1}}, exempt: own, mode: filter}, compactness: {}}",
    "{compactness: {weight: 1}}",
)
FEW = (
    *(device_query(2), device_query(4), pair_query(2), f"{pair_query(3)}&resources=VCPU:1", "resources=PGPU:1"),
    *("resources=VCPU:1,MEMORY_MB:1", "resources_A=PGPU:1&required_A=CUSTOM_A&resources_B=VCPU:1&group_policy=none"),
)


@pytest.mark.any_database
def test_the_best_few_are_the_first_of_all_whatever_changes(app: Flask, seeds: Callable[..., range]) -> None:
    """Some hosts change, or are full, between requests for the same, or for other numbers; some share with others."""
    compared = 0
    for seed in seeds(5, times=10):
        chance, profile = Random(seed), Random(seed).choice(PROFILES)
        api = with_settings(app, planner_yaml=f"profiles: {{default: {profile}}}")
        with_limits(api, first_trees=1, growth=1)
        make_names(api.database)
        # The planner reads about twenty trees before it uses bounds.
        hosts, pools = chance.choice((8, 8, 8, 24)), chance.choice((0, 0, 1, 2))
        load(api.database, cloud := random_hosts(chance, hosts, models=chance.choice((None, 3)), pools=pools))
        for _ in range(5):
            for query in chance.sample(FEW, 2):
                everything = without_cache(api, query)[1]["allocation_requests"]
                compared += len(everything)
                for limit in (1, 4, 4):
                    assert answer(api, f"{query}&limit={limit}")[1]["allocation_requests"] == everything[:limit], seed
            groups = {"_A": {"resources": {"PGPU": 1}, "count": chance.choice((2, 3))}}
            body = {"groups": groups, "limit": 3}
            answers = [api.post(CANDIDATES, body).json]
            api.database.cloud_cache = None
            assert answers == [api.post(CANDIDATES, body).json]
            change_hosts(api, chance, cloud)
    assert compared > 50


def change_hosts(api: Api, chance: Random, cloud: SmallCloud) -> None:
    """Leave nothing in some hosts, or all; let some providers no longer be places."""
    with api.database.writer.begin() as connection:
        roots = sorted({node.root for node in cloud.values()})
        for root in chance.sample(roots, chance.choice((2, len(roots) // 2))):
            inside = ", ".join([str(id_) for id_, node in cloud.items() if node.root == root])
            reserved = chance.choice(("total", "total", "0"))
            run(connection, f"UPDATE inventories SET reserved = {reserved} WHERE resource_provider_id IN ({inside})")
        lost = chance.choice(sorted(cloud))
        run(connection, f"DELETE FROM resource_provider_traits WHERE resource_provider_id = {lost}")
