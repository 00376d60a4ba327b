"""The search inside one tree, compared with trying every combination."""

from itertools import islice

from hypothesis import given

from placement.candidates.compose.slots import RequestBudget, SlotComposer
from placement.domain.search_plan import CandidateRequest, RequestGroup, plan_for
from placement.domain.tree import Tree
from tests.examples import examples
from tests.unit.candidates.searches import brute_force, devices, searches


@examples(60)
@given(searches())
def test_the_search_finds_exactly_what_trying_everything_finds(search):
    """No candidate is missing, wrong, or given twice."""
    plan, tree = search
    found = list(SlotComposer(plan, RequestBudget()).choices(tree))
    assert len(found) == len(set(found))
    assert set(found) == brute_force(plan, tree)


def test_devices_that_each_group_has_its_own_of_are_in_no_subtree_of_one_of_them():
    """Found out before any choice is tried: one device would have to be above another."""
    names = [f"_{number}" for number in range(8)]
    groups = tuple(RequestGroup(suffix=name, resources={"PGPU": 1}) for name in names)
    plan = plan_for(CandidateRequest(groups=groups, same_subtree=(frozenset(names[:2]),), isolate=True))
    devices = list(range(2, 18))
    tree = Tree(1, [devices], parents={1: None, **dict.fromkeys(devices, 1)})
    budget = RequestBudget(per_tree=0)
    assert list(SlotComposer(plan, budget).choices(tree)) == []
    assert not budget.was_hit


def test_a_host_without_the_traits_of_the_unsuffixed_group_is_not_searched():
    """Its four combinations would be tried sooner than found hopeless."""
    traits = (frozenset({"HW_CPU_X86_AVX"}), frozenset({"HW_CPU_X86_AVX2"}))
    group = RequestGroup(resources={"VCPU": 1, "MEMORY_MB": 1}, required=traits)
    plan = plan_for(CandidateRequest(groups=(group,)))
    numa_nodes = [2, 3]
    for met, found in (({1: 0b11, 2: 0b01, 3: 0b01}, 0), ({2: 0b01, 3: 0b10}, 2)):
        tree = Tree(1, [numa_nodes, numa_nodes], met=met)
        budget = RequestBudget(per_tree=100 if found else 0)
        composer = SlotComposer(plan, budget)
        assert len([*composer.choices(tree)]) == found
        assert composer.lacks_traits(tree) is not bool(found)
        assert not budget.was_hit


def test_sixteen_groups_on_sixteen_devices_need_few_steps():
    """The reference would look at 16^16 combinations."""
    for isolate in (True, False):
        plan, tree = devices(16, 16, isolate=isolate)
        budget = RequestBudget(per_tree=100_000)
        assert len(list(islice(SlotComposer(plan, budget).choices(tree), 1000))) == 1000
        assert not budget.was_hit


def test_nine_groups_on_eight_devices_fail_at_once():
    for isolate in (True, False):
        plan, tree = devices(9, 8, isolate=isolate)
        budget = RequestBudget(per_tree=0)
        assert list(SlotComposer(plan, budget).choices(tree)) == []
        assert not budget.was_hit


def test_a_search_over_its_budget_says_so():
    plan, tree = devices(8, 8)
    budget = RequestBudget(per_tree=100)
    found = list(SlotComposer(plan, budget).choices(tree))
    assert found
    assert budget.was_hit


def test_a_budget_is_shared_by_all_trees_of_a_request():
    plan, tree = devices(3, 3)
    budget = RequestBudget(per_request=40)
    complete = list(SlotComposer(plan, budget).choices(tree))
    assert len(complete) == 6
    assert not budget.was_hit
    for _ in range(5):
        list(SlotComposer(plan, budget).choices(tree))
    assert budget.was_hit


def test_a_subtree_that_is_too_small_is_found_out_before_other_groups_are_tried():
    """24 groups on 12 devices with room for two each, and three of the groups on the same device."""
    names = [f"_{number}" for number in range(24)]
    groups = tuple(RequestGroup(suffix=name, resources={"PGPU": 1}) for name in names)
    plan = plan_for(CandidateRequest(groups=groups, same_subtree=(frozenset(names[5:20:5]),)))
    devices = list(range(2, 14))
    tree = Tree(1, [devices] * len(plan.demands), parents={1: None, **dict.fromkeys(devices, 1)})
    tree.room = {(device, "PGPU"): 2.0 for device in devices}
    budget = RequestBudget(per_tree=1000)
    assert list(SlotComposer(plan, budget).choices(tree)) == []
    assert not budget.was_hit
