"""Trees are ruled out by what is left in them only if they cannot serve all of a request at once."""

import pytest
from hypothesis import HealthCheck, given, settings

from placement.candidates.budget import RequestBudget
from placement.candidates.walk import Candidate, candidates_in
from placement.domain.candidate_request import CandidateRequest, RequestGroup
from placement.domain.search_plan import plan_for
from placement.domain.tree import Tree
from placement.store.connection.database import Database
from placement.store.connection.unit_of_work import Transaction, reads
from placement.store.search.names import ids_for
from placement.store.search.narrowing import MANY_DEMANDS, Narrowing
from placement.store.search.ranges import EVERYWHERE, Extent
from placement.store.search.tree_room import RoomNeeded, room_needed, roots_with_room
from placement.store.search.trees import TreeReader
from tests.examples import examples
from tests.small_clouds import load, situations
from tests.store.rows import DISK_GB, VCPU, add_providers, allocate, run, stocking
from tests.store.statements import statements

on_one_database = examples(100, settings(suppress_health_check=[HealthCheck.function_scoped_fixture]))


@pytest.fixture
def database(migrated: Database) -> Database:
    """A database of each of the three kinds."""
    return migrated


def without_sharing(tree: Tree) -> Tree:
    """Make a tree yield candidates of sharing providers alone, which a search otherwise yields for one tree only."""
    tree.sharing = frozenset()
    return tree


@reads
def found(tx: Transaction, request: CandidateRequest, extent: Extent, *, at_once: bool) -> set[Candidate]:
    """Return the candidates in the trees of an extent, read after every tree was read alone."""
    plan = plan_for(request)
    narrowing = Narrowing(tx, plan, ids_for(tx, plan), at_once=at_once)
    reader = TreeReader(tx, narrowing)
    if not reader.is_possible:
        return set()
    for root in range(1, 4):
        reader.trees_of([root])
    read = reader.all_trees() if extent == EVERYWHERE else reader.trees_of(extent.values["roots"])
    return {*candidates_in(plan, map(without_sharing, read.trees), RequestBudget())}


@on_one_database
@given(situation=situations)
def test_no_candidate_is_lost(database, situation):
    request, cloud = situation
    load(database, cloud)
    everywhere = found(database, request, EVERYWHERE, at_once=False)
    roots = sorted({node.root for node in cloud.values()})
    for extent in (EVERYWHERE, Extent.listed(roots)):
        assert found(database, request, extent, at_once=True) == everywhere


@reads
def with_room(tx: Transaction, rooms: dict[int, RoomNeeded]) -> set[int]:
    return {*roots_with_room(tx, rooms)}


@pytest.fixture
def in_use(database: Database) -> Database:
    """Three trees: one provider with 8 VCPU, half of them in use; two with 4 each; one with 8 and one over capacity."""
    with database.writer.begin() as connection:
        add_providers(connection, 5)
        run(
            connection,
            "UPDATE resource_providers SET root_provider_id = 2, parent_provider_id = 2 WHERE id = 3",
            "UPDATE resource_providers SET root_provider_id = 4, parent_provider_id = 4 WHERE id = 5",
            *[stocking((id_, VCPU), total=total) for id_, total in ((1, 8), (2, 4), (3, 4), (4, 8), (5, 8))],
            stocking((4, DISK_GB), total=1),
        )
        allocate(connection, "first", {(1, VCPU): 4, (5, VCPU): 8})
        run(connection, "UPDATE inventories SET total = 2, max_unit = 2 WHERE resource_provider_id = 5")
    return database


@pytest.mark.parametrize(
    ("rooms", "roots"),
    [
        pytest.param({VCPU: RoomNeeded(4, 4)}, {1, 2, 4}, id="all"),
        pytest.param({VCPU: RoomNeeded(5, 4)}, {2, 4}, id="what is in use is not left"),
        pytest.param({VCPU: RoomNeeded(5, 5)}, {4}, id="what is left at several providers is not left at one"),
        pytest.param({VCPU: RoomNeeded(8, 8)}, {4}, id="a provider over capacity takes nothing from others"),
        pytest.param({VCPU: RoomNeeded(9, 1)}, set(), id="none"),
        pytest.param({VCPU: RoomNeeded(1, 1), DISK_GB: RoomNeeded(1, 1)}, {4}, id="of both classes"),
    ],
)
def test_trees_with_room_have_enough_left_of_each_class(in_use, rooms, roots):
    assert with_room(in_use, rooms) == roots


def group(suffix: str, **resources: int) -> RequestGroup:
    return RequestGroup(suffix=suffix, resources=resources)


@pytest.mark.parametrize(
    ("groups", "isolate", "rooms"),
    [
        pytest.param([group("_A", VCPU=2), group("_B", VCPU=3)], False, {"VCPU": RoomNeeded(5, 3)}, id="groups add up"),
        pytest.param(
            [group("_A", VCPU=2), group("_B", VCPU=3)], True, {"VCPU": RoomNeeded(5, 3)}, id="isolated ones as well"
        ),
        pytest.param(
            [group("", VCPU=2), group("_B", VCPU=3)], True, {"VCPU": RoomNeeded(5, 3)}, id="and the unsuffixed one"
        ),
        pytest.param(
            [group("_A", VCPU=2, DISK_GB=1)],
            True,
            {"VCPU": RoomNeeded(2, 2), "DISK_GB": RoomNeeded(1, 1)},
            id="classes",
        ),
    ],
)
def test_a_tree_needs_room_for_all_slots(groups, isolate, rooms):
    plan = plan_for(CandidateRequest(groups=tuple(groups), isolate=isolate))
    assert room_needed(plan, range(len(plan.demands))) == rooms


def test_what_others_may_serve_does_not_count():
    plan = plan_for(CandidateRequest(groups=(group("_A", VCPU=2), group("_B", VCPU=3)), isolate=False))
    assert room_needed(plan, {1}) == {"VCPU": RoomNeeded(3, 3)}
    assert room_needed(plan, set()) == {}


@reads
def narrowed(tx: Transaction, request: CandidateRequest, *, at_once: bool) -> set[int]:
    plan = plan_for(request)
    return {*Narrowing(tx, plan, ids_for(tx, plan), at_once=at_once).narrowed(EVERYWHERE).options}


def test_many_groups_are_not_looked_for_in_trees_that_lack_room(in_use):
    """Twenty groups in 5,000 hosts none of which has room for them all took two seconds."""
    groups = [group(f"_{amount}", VCPU=amount) for amount in range(1, MANY_DEMANDS + 1)]
    request = CandidateRequest(groups=tuple(groups[1:]), isolate=False)
    assert narrowed(in_use, request, at_once=True) == narrowed(in_use, request, at_once=False) == {4}
    request = CandidateRequest(groups=tuple(groups), isolate=False)
    assert narrowed(in_use, request, at_once=False) == {4}
    with statements(in_use) as sent:
        assert narrowed(in_use, request, at_once=True) == set()
    assert not [text for text in sent if "max_unit" in text]


@reads
def narrowed_after_reading_in_vain(tx: Transaction, request: CandidateRequest) -> set[int]:
    plan = plan_for(request)
    narrowing = Narrowing(tx, plan, ids_for(tx, plan), at_once=True)
    assert not narrowing.narrowed(Extent.listed([2])).options
    return {*narrowing.narrowed(EVERYWHERE).options}


@pytest.mark.parametrize(
    ("conditions", "is_summed_up"),
    [({}, True), ({"required": (frozenset({"HW_CPU_X86_AVX2"}),)}, False)],
    ids=["any provider", "those with a trait"],
)
def test_a_few_providers_with_a_trait_are_read_without_summing_up_all_others(in_use, conditions, is_summed_up):
    request = CandidateRequest(groups=(RequestGroup(suffix="_A", resources={"VCPU": 9}, **conditions),))
    with statements(in_use) as sent:
        assert narrowed_after_reading_in_vain(in_use, request) == set()
    assert bool([text for text in sent if "HAVING" in text]) is is_summed_up
