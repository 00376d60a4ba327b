"""Trees left out because no choice of single providers serves a request, compared with what composing finds."""

from hypothesis import given
from hypothesis import strategies as st

from placement.allocators.budget import Budget
from placement.candidates.compose.any_choice import AnyChoice
from placement.candidates.compose.devices import DeviceComposer
from placement.domain.candidate_request import CandidateRequest, RequestGroup
from placement.domain.places import Levels
from placement.domain.planner_request import PlannerGroup, PlannerRequest
from placement.domain.planner_tree import PlannerTree
from placement.domain.search_plan import plan_for
from placement.domain.tree import Tree
from tests.examples import examples
from tests.unit.candidates.searches import requests, searches_of

counts = st.lists(st.sampled_from((1, 1, 2)), min_size=5, max_size=5)


def planned(request: CandidateRequest, of_groups: list[int]) -> PlannerRequest:
    """Return a planner request for several providers of each group."""
    groups = [PlannerGroup(group=one, count=count) for one, count in zip(request.groups, of_groups, strict=False)]
    return PlannerRequest(groups=tuple(groups), isolate=request.isolate, same_subtree=request.same_subtree)


def is_lacking(request: PlannerRequest, tree: Tree) -> bool:
    """Ask it about a tree, reading the parents for it."""
    as_read = Tree(tree.root, tree.options, tree.room, tree.met, root_of=tree.root_of, sharing=tree.root_of.keys())
    return bool(AnyChoice(request, lambda _roots: tree.parents).lacking_in([as_read]))


def serves(request: PlannerRequest, tree: Tree) -> bool | None:
    """Tell whether the device allocator finds any way."""
    details = PlannerTree(
        tree.root,
        tree.parents,
        {one: str(one) for one in tree.parents},
        positions=dict.fromkeys(tree.parents, ()),
        foreign_providers=tree.root_of.keys(),
    )
    composer = DeviceComposer(request, plan_for(request.plain), Levels((), ()), locks={})
    return composer.serves(tree, details, Budget(1_000_000))


@examples(300)
@given(requests(), counts, st.data())
def test_no_tree_that_serves_a_request_is_left_out(asked, of_groups, data):
    request = planned(asked, of_groups)
    tree = data.draw(searches_of(plan_for(request.plain)))
    if serves(request, tree):
        assert not is_lacking(request, tree)


@examples(300)
@given(requests(), st.data())
def test_of_one_provider_for_each_group_nothing_is_left_to_composing(asked, data):
    request = planned(asked, [1] * 5)
    tree = data.draw(searches_of(plan_for(request.plain)))
    assert is_lacking(request, tree) is not serves(request, tree)


def test_two_places_of_a_host_are_in_no_subtree_of_one_of_them():
    groups = [PlannerGroup(group=RequestGroup(suffix=name, resources={"VCPU": 1})) for name in ("_1", "_2")]
    tree = Tree(1, [[2, 3]], {(2, "VCPU"): 9, (3, "VCPU"): 9}, parents={1: None, 2: 1, 3: 1})
    for isolate in (True, False):
        tied = PlannerRequest(groups=tuple(groups), isolate=isolate, same_subtree=(frozenset({"_1", "_2"}),))
        assert is_lacking(tied, tree) is isolate


def test_several_providers_of_a_class_have_their_traits_together():
    group = RequestGroup(resources={"PGPU": 1, "VCPU": 1}, required=(frozenset({"A"}), frozenset({"B"})))
    tree = Tree(1, [[2, 3], [4, 5]], met={2: 0b1, 3: 0b10}, parents={1: None, 2: 1, 3: 1, 4: 1, 5: 1})
    for count in (1, 2):
        request = PlannerRequest(groups=(PlannerGroup(group=group, count=count),))
        assert (serves(request, tree), is_lacking(request, tree)) == (count == 2, count == 1)
