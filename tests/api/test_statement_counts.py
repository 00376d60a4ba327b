"""How many SQL statements each endpoint sends: the same for two hosts and for ten.

Candidates are the exception: trees are read in chunks that grow, so a long search takes one more statement each time
the cloud grows by a factor.
"""

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy import event

from placement.services.journal import put_in_order
from placement.settings import RankingSettings
from tests.api.conftest import stop_background, with_limits, with_settings
from tests.clouds import SHARES, allocate, provider
from tests.stored_clouds import stored

FEW, MANY = 2, 10
CONSUMER = "11111111-0000-4000-8000-000000000000"


NOT_EACH_TIME = (
    # Some claims, at random, look for claims of consumers that no longer exist.
    *("max(planner_claims.id)", "FROM planner_claims LEFT OUTER JOIN consumers"),
    # MariaDB's triggers are looked at every five seconds.
    "FROM information_schema.triggers",
)


@contextmanager
def statements(app) -> Iterator[list[str]]:
    """Collect the statements that are sent inside the block, except those NOT_EACH_TIME."""
    stop_background(app)
    put_in_order(app.extensions["placement"].database)  # else MariaDB's journal may be put in order inside
    sent: list[str] = []

    def note(_connection, _cursor, statement, *_rest):
        if not any(part in statement for part in NOT_EACH_TIME):
            sent.append(statement)

    engine = app.extensions["placement"].database.engine
    event.listen(engine, "before_cursor_execute", note)
    try:
        yield sent
    finally:
        event.remove(engine, "before_cursor_execute", note)


def hosts(first: int, last: int) -> list:
    """Create hosts with two NUMA nodes, each with a NIC, all in one aggregate with a storage pool."""
    return [
        provider(
            f"host{i}",
            *(
                provider(
                    f"host{i}-numa{n}",
                    provider(f"host{i}-nic{n}", SRIOV_NET_VF=8, traits=["HW_NIC_SRIOV"]),
                    VCPU=8,
                    MEMORY_MB=1024,
                    traits=["HW_NUMA_ROOT"],
                )
                for n in (0, 1)
            ),
            DISK_GB=100,
            aggregates=["A"],
        )
        for i in range(first, last)
    ]


@pytest.fixture
def cloud(api) -> Callable[[int, int], None]:
    aggregates = {"A": str(uuid.uuid4())}
    pool = stored(api.app, provider("pool", DISK_GB=1000, traits=[SHARES], aggregates=["A"]), aggregates=aggregates)
    pool_uuid = pool.providers["pool"]
    allocate(api, pool_uuid, {"DISK_GB": 1}, consumer=CONSUMER)

    def grow(first: int, last: int) -> str:
        built = stored(api.app, *hosts(first, last), aggregates=aggregates)
        for name, found in built.providers.items():
            if "numa" in name:
                allocate(api, found, {"VCPU": 1})
        return pool_uuid

    return grow


READS = [
    "/resource_providers",
    "/resource_providers?in_tree={pool}",
    "/resource_providers?resources=VCPU:1&required=HW_NUMA_ROOT",
    "/resource_providers/{pool}",
    "/resource_providers/{pool}/inventories",
    "/resource_providers/{pool}/inventories/DISK_GB",
    "/resource_providers/{pool}/usages",
    "/resource_providers/{pool}/aggregates",
    "/resource_providers/{pool}/traits",
    "/resource_providers/{pool}/allocations",
    "/resource_classes",
    "/traits?associated=true",
    "/allocations/" + CONSUMER,
    "/usages?project_id=project",
    "/allocation_candidates?resources=VCPU:1,DISK_GB:10",
    "/allocation_candidates?resources=VCPU:1,DISK_GB:10&required=HW_NUMA_ROOT",
    (
        "/allocation_candidates?resources_C=VCPU:1,MEMORY_MB:64&resources_N=SRIOV_NET_VF:1&required_N=HW_NIC_SRIOV"
        "&group_policy=isolate&same_subtree=_C,_N"
    ),
    "/planner/v1/explain?resources=VCPU:99,DISK_GB:10&required=HW_NUMA_ROOT",
    (
        "/planner/v1/explain?resources_C=VCPU:9,MEMORY_MB:64&resources_N=SRIOV_NET_VF:1&required_N=HW_NIC_SRIOV"
        "&resources=DISK_GB:1&group_policy=isolate&same_subtree=_C,_N"
    ),
]


def counts(app, api, pool: str) -> dict[str, int]:
    found = {}
    for path in READS:
        with statements(app) as sent:
            assert api.get(path.format(pool=pool)).status_code == 200
        found[path] = len(sent)
    return found


def test_a_read_takes_as_many_statements_in_a_large_cloud(app, api, cloud):
    pool = cloud(0, FEW - 1)
    for _ in range(2):
        counts(app, api, pool)  # Names of standard classes and traits are looked up once; then texts are cached.
    cloud(FEW - 1, FEW)
    small = counts(app, api, pool)
    cloud(FEW, MANY)
    assert counts(app, api, pool) == small
    assert max(small.values()) <= 16


def test_a_claim_of_a_custom_class_looks_up_its_name_once(app, api):
    """As nova claims a bare metal node; other names of the node are looked up by id."""
    node = stored(app, provider("node", CUSTOM_BAREMETAL=2)).providers["node"]
    with statements(app) as sent:
        allocate(api, node, {"CUSTOM_BAREMETAL": 1})
    assert len([statement for statement in sent if statement.startswith("SELECT resource_classes.name")]) == 1


@pytest.mark.parametrize(
    "query",
    [
        pytest.param("resources_C=VCPU:1&required_C=!HW_NUMA_ROOT", id="no node without the trait of nodes"),
        pytest.param("resources_C=VCPU:8", id="no node with so much left"),
    ],
)
@pytest.mark.parametrize("ranked", [True, False])
def test_a_search_of_many_hosts_that_finds_nothing_takes_a_fixed_number_of_statements(app, api, cloud, query, ranked):
    """Neither hosts nor portions of them cost a statement, and what is known of the cloud is not read again."""
    cloud(0, MANY)
    api = api if ranked else with_settings(app, ranking=RankingSettings(enabled=False))
    query = f"/allocation_candidates?{query}&limit=1"
    with_limits(api, first_trees=1, growth=2)
    counts = []
    for further in ("", "&root_required=!CUSTOM_NOTHING"):
        api.put("/traits/CUSTOM_NOTHING")
        with statements(api.app) as sent:
            assert api.get(query + further).get_json()["allocation_requests"] == []
        counts.append(len(sent))
    assert counts[1] <= counts[0] <= 12


def test_the_cloud_is_read_before_the_first_request(app):
    """Processes that are forked from the one that created the application share what it read."""
    stored(app, *hosts(0, FEW))

    def of_the_first_search(*, reads_again: bool) -> int:
        worker = with_settings(app)
        if reads_again:
            worker.database.cloud_cache.history.drop()
        with statements(worker.app) as sent:
            assert worker.get("/allocation_candidates?resources=VCPU:1").status_code == 200
        return len(sent)

    assert of_the_first_search(reads_again=False) < of_the_first_search(reads_again=True)
