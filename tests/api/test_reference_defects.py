"""Defects of openstack-placement 16.0.0 that this server must not have.

Those that need concurrent clients are in tests/concurrency: two creators of one consumer, eight clients allocating more
of one provider than it has, and a locked SQLite.
"""

import pytest

from tests.clouds import SHARES, provider
from tests.stored_clouds import stored


@pytest.fixture
def make(api):
    """Build a cloud of tree literals over HTTP."""
    return lambda *roots: stored(api.app, *roots)


def candidates(api, query: str, **options) -> list[dict]:
    response = api.get(f"/allocation_candidates?{query}", **options)
    assert response.status_code == 200
    return response.get_json()["allocation_requests"]


def test_a_forbidden_trait_in_the_unsuffixed_group_is_served(api, make):
    """On PostgreSQL the reference compares names with ids and answers 500 if trees exist."""
    cloud = make(
        provider("host", provider("fast", VCPU=8, traits=["STORAGE_DISK_SSD"]), provider("slow", VCPU=8), DISK_GB=10)
    )
    found = candidates(api, "resources=VCPU:1,DISK_GB:1&required=!STORAGE_DISK_SSD")
    assert [set(each["allocations"]) for each in found] == [{cloud.providers["host"], cloud.providers["slow"]}]


def test_amounts_do_not_leak_between_candidates(api, make):
    """Without group_policy=none the reference adds amounts of other candidates: 5 was returned as 11."""
    make(provider("host", *(provider(f"numa{i}", VCPU=8) for i in range(3))))
    found = candidates(api, "resources=VCPU:2&resources_A=VCPU:3")
    totals = {sum(share["resources"]["VCPU"] for share in each["allocations"].values()) for each in found}
    assert totals == {5}
    assert len(found) == 9


def test_a_sharing_provider_need_not_be_a_root(api, make):
    """The reference answers 500 if another tree is served by a child of a tree that is not involved."""
    cloud = make(
        provider("host", VCPU=8, aggregates=["A"]),
        provider("array", provider("pool", DISK_GB=100, traits=[SHARES], aggregates=["A"])),
    )
    (found,) = candidates(api, "resources=VCPU:1,DISK_GB:10")
    assert set(found["allocations"]) == {cloud.providers["host"], cloud.providers["pool"]}


def test_one_sharing_provider_serves_the_unsuffixed_group_of_every_tree(api, make):
    """The reference treats the equal parts of two trees as one and combines them with other groups in one tree only."""
    cloud = make(
        provider("host1", VCPU=8, aggregates=["A"]),
        provider("host2", VCPU=8, aggregates=["A"]),
        provider("pool", DISK_GB=100, traits=[SHARES], aggregates=["A"]),
    )
    found = candidates(api, "resources=DISK_GB:10&resources_C=VCPU:1")
    pool = cloud.providers["pool"]
    assert {frozenset(each["allocations"]) for each in found} == {
        frozenset({pool, cloud.providers[host]}) for host in ("host1", "host2")
    }


@pytest.mark.parametrize("path", ["/allocation_candidates", "/resource_providers"])
def test_an_amount_of_ten_to_the_twentieth_is_malformed(api, path):
    """The reference answers 500."""
    assert api.get(f"{path}?resources=VCPU:{10**20}").status_code == 400
