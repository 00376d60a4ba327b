"""How many SQL statements the planner sends: the same for few hosts and for many."""

import pytest
from flask import Flask

from tests.api.conftest import Api, is_on_mariadb, with_settings
from tests.api.test_statement_counts import statements
from tests.claims import ask
from tests.planner_hosts import CANDIDATES, CLAIMS, consumer, register

pytestmark = pytest.mark.each_database

SMALL = [[{"gpus": 1, "nics": 1}] * 2]
GROUPS = {
    "_GPU": {"resources": {"PGPU": 1}, "count": 2},
    "_NIC": {"resources": {"SRIOV_NET_VF": 1}, "count": "per-subtree"},
}
JOINT = {"groups": GROUPS, "affinity": [{"groups": ["_GPU", "_NIC"], "level": "pcie"}]}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        pytest.param(CANDIDATES, {**JOINT, "limit": 2}, id="candidates"),
        pytest.param(CLAIMS, JOINT, id="claims"),
        pytest.param(CLAIMS, {**JOINT, "exclusive": [{"groups": ["_NIC"], "level": "pcie"}]}, id="exclusive claims"),
    ],
)
def test_more_hosts_cost_no_more_statements(app: Flask, api: Api, path, body) -> None:
    counts = []
    for first, last in ((0, 3), (3, 6)):
        for number in range(first, last):
            register(api, f"host{number}", numa_nodes=SMALL)
        with statements(app) as sent:
            ask(api, "POST", path, body=body if path == CANDIDATES else {**body, "consumer": consumer()})
        counts.append(len(sent))
    # The first claim creates the project, the user and the consumer type.
    assert counts[1] <= counts[0]
    assert 0 < counts[1] <= 40


def test_the_first_claim_of_a_worker_takes_at_most_25_statements(app: Flask, api: Api) -> None:
    """It knows no names of classes and traits yet. Later claims of GPUs with NICs take at most 22."""
    for number in range(3):
        register(api, f"host{number}", numa_nodes=SMALL)
    ask(api, "POST", CLAIMS, body={**JOINT, "consumer": consumer()})  # creates the project and the user
    worker = with_settings(app)
    counts = []
    for _claim in range(2):
        with statements(worker.app) as sent:
            ask(worker, "POST", CLAIMS, body={**JOINT, "consumer": consumer()})
        counts.append(len(sent))
    assert counts[0] <= 25
    assert counts[1] <= 22


def test_more_groups_cost_no_more_statements(app: Flask, api: Api) -> None:
    """Names are looked up once for all of them. Two statements rule out trees that have too little for many groups."""
    register(api, numa_nodes=SMALL)
    for number in range(10):
        ask(api, "PUT", f"/traits/CUSTOM_NO_{number}")
    group = {"resources": {"SRIOV_NET_VF": 1}, "selector": ["HW_NIC_SRIOV"]}
    counts = []
    for groups in (2, 10):
        body = {
            "groups": {f"_{number}": {**group, "vf_selector": [f"!CUSTOM_NO_{number}"]} for number in range(groups)}
        }
        for path, further in ((CANDIDATES, {}), (CANDIDATES, {"explain": True}), (CLAIMS, {"consumer": consumer()})):
            # Now the names of standard classes are cached, and what the claim before has changed is known.
            ask(api, "POST", CANDIDATES, body={"groups": {"_0": group}})
            with statements(app) as sent:
                ask(api, "POST", path, body={**body, **further})
            counts.append(len(sent))
    # One of the two tells what has changed, which an explanation asks anyway. On MariaDB two more may follow that one.
    most = 4 if is_on_mariadb(app) else 2
    assert all(many <= few + most for few, many in zip(counts[:3], counts[3:], strict=True))


def test_more_members_cost_no_more_statements(app: Flask, api: Api) -> None:
    """Hosts that members are spread over are read together, with names of custom classes and traits."""
    for number in range(12):
        register(api, f"host{number}", numa_nodes=SMALL)
    counts = []
    for members in (2, 6, 12):
        body = {**JOINT, "members": members, "apart": {"level": "host"}, "consumer": consumer(), "dry_run": True}
        with statements(app) as sent:
            ask(api, "POST", CLAIMS, body=body)
        counts.append(len(sent))
    # Reading all hosts takes portions that grow.
    assert counts[2] <= counts[0] + 12
