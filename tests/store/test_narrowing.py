"""Narrowing a cloud finds the same trees whatever was read before, and whichever demands are read together."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from placement.domain.candidate_request import CandidateRequest, RequestGroup
from placement.domain.search_plan import plan_for
from placement.store.connection.database import Database
from placement.store.connection.unit_of_work import Transaction, reads
from placement.store.search.names import ids_for
from placement.store.search.narrowing import NOTHING_LEFT, Narrowed, Narrowing, Options
from placement.store.search.ranges import EVERYWHERE, Extent
from placement.store.search.serving import DEMANDS, PROVIDER, Serving
from placement.store.search.together import BITS, DemandReads
from tests.examples import examples
from tests.small_clouds import load, situations
from tests.store.rows import DISK_GB, VCPU, add_providers, run, stocking
from tests.store.statements import statements

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


@reads
def narrowed_one_by_one(tx: Transaction, request: CandidateRequest, roots: list[int]) -> Options:
    """Return the result of narrowing each tree alone."""
    plan = plan_for(request)
    narrowing = Narrowing(tx, plan, ids_for(tx, plan))
    found: Options = {}
    for root in roots if narrowing.is_possible else ():
        found |= narrowing.narrowed(Extent.listed([root])).options
    return found


@on_one_database
@given(situation=situations)
def test_all_trees_give_what_each_gives_alone_whatever_was_read_before(database, situation):
    request, cloud = situation
    load(database, cloud)
    roots = sorted({provider.root for provider in cloud.values()})
    alone = narrowed_one_by_one(database, request, roots)
    assert narrowed(database, request, first=[]).options == alone
    # A tree that was read in vain hides no other.
    assert narrowed(database, request, first=roots[:1]).options == alone


@pytest.mark.parametrize(
    ("conditions", "reads_providers"),
    [
        pytest.param({}, False, id="any"),
        pytest.param({"forbidden": frozenset({"HW_CPU_X86_AVX2"})}, False, id="a trait of the provider"),
        pytest.param({"resources": {"VCPU": 1, "DISK_GB": 1}}, True, id="two classes"),
    ],
)
def test_stock_of_one_class_is_read_without_its_providers(database, conditions, reads_providers):
    with database.writer.begin() as connection:
        (provider,) = add_providers(connection, 1)
        run(connection, stocking((provider, VCPU), total=8), stocking((provider, DISK_GB), total=8))
    group = RequestGroup(**{"suffix": "_A", "resources": {"VCPU": 1}, **conditions})
    with statements(database) as sent:
        assert [*narrowed(database, CandidateRequest(groups=(group,)), first=[]).options] == [provider]
    (narrowing,) = [text for text in sent if "max_unit" in text]
    assert (" resource_providers " in narrowing) is reads_providers


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


def served(serving: Serving) -> set[tuple[int, int]]:
    """Return each provider with each demand that it serves."""
    number, provider = serving.columns.at(DEMANDS, PROVIDER)
    return {(row[provider], demand) for row in serving.rows for demand in serving.demands[row[number]]}


def group(suffix: str, amount: int, **conditions: Any) -> RequestGroup:
    return RequestGroup(suffix=suffix, resources={"VCPU": amount, "DISK_GB": 1}, **conditions)


AVX2 = frozenset({"HW_CPU_X86_AVX2"})
PLAIN = (group("_A", 1), group("_B", 3), group("_C", 2, forbidden=AVX2))
ALIKE = CandidateRequest(groups=(*PLAIN, group("_D", 1, required=(AVX2,))), isolate=False)


@reads
def read_at_once_and_one_by_one(
    tx: Transaction, request: CandidateRequest, roots: list[int] | None
) -> tuple[DemandReads, set[tuple[int, int]], set[tuple[int, int]]]:
    plan = plan_for(request)
    narrowing = Narrowing(tx, plan, ids_for(tx, plan))
    demands = range(len(plan.demands))
    at_once = narrowing.own_providers(demands, roots)
    one_by_one = [served(narrowing.own_providers([demand], roots)) for demand in demands]
    return at_once.together, served(at_once), set[tuple[int, int]]().union(*one_by_one)


@pytest.mark.parametrize(
    ("roots", "together"),
    [(None, ((0, 1, 2, 3),)), ([1], ((2,), (3,), (0, 1)))],
    ids=["in all trees", "in a few trees, where traits are looked up"],
)
def test_demands_for_the_same_classes_are_read_together(database, roots, together):
    """To read each of thirteen groups for five classes took three tenths of a second on 5,000 hosts."""
    assert read_at_once_and_one_by_one(database, ALIKE, roots)[0] == together


@on_one_database
@given(situation=situations, in_one_tree=st.booleans())
def test_what_is_read_together_serves_the_same_demands_as_read_one_by_one(database, situation, in_one_tree):
    _request, cloud = situation
    load(database, cloud)
    roots = [min(provider.root for provider in cloud.values())] if in_one_tree else None
    _together, at_once, one_by_one = read_at_once_and_one_by_one(database, ALIKE, roots)
    assert at_once == one_by_one


def test_demands_that_all_name_a_trait_are_read_by_their_traits(database):
    request = CandidateRequest(groups=tuple([group(f"_{amount}", amount, required=(AVX2,)) for amount in (1, 2)]))
    assert read_at_once_and_one_by_one(database, request, None)[0] == ((0,), (1,))


def test_more_demands_than_a_number_has_bits_are_read_in_portions(database):
    request = CandidateRequest(groups=tuple([group(f"_{amount}", amount) for amount in range(1, BITS + 3)]))
    together = read_at_once_and_one_by_one(database, request, None)[0]
    assert [len(demands) for demands in together] == [BITS, 2]
