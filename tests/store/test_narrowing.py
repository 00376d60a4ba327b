"""Narrowing a cloud after some trees were read gives the same trees as without."""

import pytest
from hypothesis import HealthCheck, given, settings

from placement.domain.candidate_request import CandidateRequest, RequestGroup
from placement.domain.search_plan import plan_for
from placement.store.connection.database import Database
from placement.store.connection.unit_of_work import Transaction, reads
from placement.store.search.names import ids_for
from placement.store.search.narrowing import NOTHING_LEFT, Narrowed, Narrowing
from placement.store.search.ranges import EVERYWHERE, Extent
from tests.examples import examples
from tests.small_clouds import load, situations
from tests.store.rows import DISK_GB, VCPU, add_providers, run, stocking

on_one_database = examples(100, settings(suppress_health_check=[HealthCheck.function_scoped_fixture]))


@pytest.fixture
def database(migrated: Database) -> Database:
    """A database of each of the three kinds."""
    return migrated


@reads
def narrowed(tx: Transaction, request: CandidateRequest, *, first: list[int]) -> Narrowed:
    """Return the result of narrowing all trees after some were narrowed one by one."""
    plan = plan_for(request)
    narrowing = Narrowing(tx, plan, ids_for(tx, plan))
    if not narrowing.is_possible:
        return NOTHING_LEFT
    for root in first:
        narrowing.narrowed(Extent.listed([root]))
    return narrowing.narrowed(EVERYWHERE)


@on_one_database
@given(situation=situations)
def test_trees_that_were_read_in_vain_hide_no_other(database, situation):
    request, cloud = situation
    load(database, cloud)
    roots = sorted({provider.root for provider in cloud.values()})
    assert narrowed(database, request, first=roots[:1]).options == narrowed(database, request, first=[]).options


def test_all_trees_are_not_read_for_a_group_that_nobody_can_serve(database):
    with database.writer.begin() as connection:
        first, other = add_providers(connection, 2)
        run(connection, stocking((first, VCPU), total=8), stocking((other, DISK_GB), total=8))
    for disk, is_read in ((9, False), (8, True)):
        amounts = {"_A": {"VCPU": 1}, "_B": {"DISK_GB": disk}}
        groups = [RequestGroup(suffix=suffix, resources=resources) for suffix, resources in amounts.items()]
        found = narrowed(database, CandidateRequest(groups=tuple(groups)), first=[first])
        assert (found is not NOTHING_LEFT) is is_read
        assert found.options == {}
