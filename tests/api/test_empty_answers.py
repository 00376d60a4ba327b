"""A plain request without candidates causes a log line and a counter, and no more."""

import logging
from collections.abc import Iterator

import pytest

from placement.api import allocation_candidates
from placement.logs import RequestFormatter
from placement.settings import LoggingSettings
from tests.api.test_allocation_candidates import with_options
from tests.api.test_statement_counts import statements
from tests.clouds import SHARES, provider
from tests.stored_clouds import stored

pytestmark = pytest.mark.any_database

EMPTY = "resources=VCPU:99&required=HW_NUMA_ROOT"


class Lines(logging.Handler):
    """Keeps what a log would show, formatted while the request is being served."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(RequestFormatter(options=LoggingSettings()))
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


@pytest.fixture
def log() -> Iterator[list[str]]:
    handler, logger = Lines(), allocation_candidates.LOG
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield handler.lines
    logger.removeHandler(handler)
    logger.setLevel(before)


@pytest.fixture
def cloud(api):
    numas = [provider(f"numa{n}", VCPU=8, MEMORY_MB=64, traits=["HW_NUMA_ROOT"]) for n in range(2)]
    pool = provider("pool", DISK_GB=100, traits=[SHARES], aggregates=["A"])
    return stored(api.app, provider("host", *numas, aggregates=["A"]), provider("gpus", PGPU=1), pool)


def find(api, query: str):
    response = api.get(f"/allocation_candidates?{query}")
    assert response.status_code == 200
    return response


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("resources=SRIOV_NET_VF:1", "No provider is left after this condition: inventory of SRIOV_NET_VF"),
        ("resources_A=VCPU:9,MEMORY_MB:99", "No provider is left after this condition: 99 MEMORY_MB free (group _A)."),
        ("resources_A=VCPU:1,PGPU:1", "No provider is left after this condition: inventory of VCPU (group _A)"),
        ("resources_A=VCPU:1&required_A=!HW_NUMA_ROOT", "no trait HW_NUMA_ROOT (group _A)"),
        ("resources_A=VCPU:1&resources_B=PGPU:1&group_policy=none", "No tree is left after this condition: providers"),
        ("resources_A=VCPU:1&resources_B=VCPU:1&resources_C=VCPU:1&group_policy=isolate", "(group_policy=isolate)"),
        ("resources_A=VCPU:8&resources_B=VCPU:8&resources_C=VCPU:1&group_policy=none", "VCPU of all groups together"),
        (f"resources=VCPU:1&required={SHARES}", f"traits on the providers that serve: {SHARES} (unsuffixed group)"),
        ("resources=VCPU:1&root_required=HW_NUMA_ROOT", "No tree is left after this condition: root with trait"),
        ("resources=DISK_GB:999", "No provider is left after this condition: 999 DISK_GB free (unsuffixed group)."),
    ],
)
def test_one_line_tells_the_cause_with_the_id_of_the_request(api, cloud, log, query, told):
    response = find(api, query)
    assert response.get_json()["allocation_requests"] == []
    (line,) = log
    assert " INFO " in line
    assert "There are no allocation candidates. No " in line
    assert told in line
    assert response.headers["x-openstack-request-id"] in line


def test_long_values_do_not_make_long_lines(api, cloud, log):
    uuids = ",".join(f"00000000-0000-4000-8000-{number:012}" for number in range(300))
    find(api, f"resources=VCPU:1&member_of=in:{uuids}")
    (line,) = log
    assert len(line) < 500


def test_a_request_that_finds_candidates_says_and_asks_nothing_more(api, app, cloud, log):
    queries = ["resources=VCPU:1", "resources=VCPU:1&limit=1", "resources=VCPU:1,DISK_GB:1"]
    for query in queries:
        find(api, query)
        with statements(app) as sent:
            assert find(api, query).get_json()["allocation_requests"]
        assert not [statement for statement in sent if "max(case" in statement.lower()]
    assert log == []


@pytest.mark.parametrize("more", ["", "&limit=1000", "&member_of_A={A}", "&required_A=!HW_NUMA_ROOT"])
def test_an_empty_answer_takes_at_most_two_statements_more(api, app, cloud, more):
    """Compared with a request that has candidates, which reads summaries in three statements at the end."""
    sizes = []
    for amount in (1, 101):
        query = f"resources_A=DISK_GB:{{}}{more}".format(amount, **cloud.aggregates)
        find(api, query)
        # The same again would not be searched for.
        query = f"resources_A=DISK_GB:{{}}{more}".format(amount + 1, **cloud.aggregates)
        with statements(app) as sent:
            assert len(find(api, query).get_json()["allocation_requests"]) == (amount == 1)
        sizes.append(len(sent))
    found, empty = sizes
    assert empty <= found - 3 + 2


def test_while_nothing_changes_the_same_cause_is_told_without_a_search(api, app, cloud, log):
    before = find(api, EMPTY).get_json()
    with statements(app) as sent:
        assert find(api, EMPTY).get_json() == before
    assert not [statement for statement in sent if ".total" in statement]
    first, second = [line.partition("There are no")[2] for line in log]
    assert first == second


def test_an_operator_who_wants_no_candidates_at_all_is_told_no_cause(api, app, cloud, log):
    with_options(app, max_allocation_candidates=0)
    find(api, "resources=VCPU:1")
    assert log == []


def test_amounts_may_add_up_to_more_than_a_database_can_compare(api, cloud):
    groups = "&".join([f"resources_{number}=VCPU:{2**63 - 1 - number}" for number in range(5)])
    answer = find(api, f"{groups}&group_policy=none").get_json()
    assert answer == {"allocation_requests": [], "provider_summaries": {}}
