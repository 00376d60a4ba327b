"""From trees to the list of candidates."""

from itertools import product

import pytest

from placement.candidates.budget import RequestBudget
from placement.candidates.walk import candidates_in
from placement.domain.candidate_request import CandidateRequest, RequestGroup
from placement.domain.search_plan import plan_for
from placement.domain.tree import Tree

PLAN = plan_for(CandidateRequest(groups=(RequestGroup(resources={"DISK_GB": 1}),)))


def trees():
    """Return two trees of two providers each."""
    yield Tree(10, [[10, 11]])
    yield Tree(20, [[20, 21]])


def test_depth_first_finishes_a_tree_before_the_next():
    found = [choice for _root, choice in candidates_in(PLAN, trees(), RequestBudget())]
    assert found == [(10,), (11,), (20,), (21,)]


def test_breadth_first_takes_one_of_each_tree_in_turn():
    found = [choice for _root, choice in candidates_in(PLAN, trees(), RequestBudget(), breadth_first=True)]
    assert found == [(10,), (20,), (11,), (21,)]


def test_trees_are_read_only_as_far_as_candidates_are_wanted():
    def endless():
        yield Tree(1, [[1, 2]])
        raise AssertionError("read too far")

    found = candidates_in(PLAN, endless(), RequestBudget())
    assert [next(found), next(found)] == [(1, (1,)), (1, (2,))]


@pytest.mark.parametrize("breadth_first", [True, False])
def test_trees_with_the_same_pools_compose_them_once(breadth_first: bool):
    """Two groups on three pools: nine candidates, which otherwise each of thousands of hosts would compose."""
    groups = (RequestGroup(suffix="_A", resources={"DISK_GB": 1}), RequestGroup(suffix="_B", resources={"DISK_GB": 1}))
    plan = plan_for(CandidateRequest(groups=groups))
    room = dict.fromkeys([(1, "DISK_GB"), (2, "DISK_GB"), (3, "DISK_GB")], 9)
    root_of = {1: 1, 2: 2, 3: 3}
    hosts = [Tree(root, [[1, 2, 3]], room, root_of=root_of, sharing=root_of.keys()) for root in range(10, 1010)]
    budget = RequestBudget(per_request=100)
    found = [*candidates_in(plan, hosts, budget, breadth_first=breadth_first)]
    assert sorted(choice for _root, choice in found) == sorted(product((1, 2, 3), repeat=2))
    assert len({root for root, _choice in found}) == (9 if breadth_first else 1)
    assert not budget.was_hit


def test_a_candidate_of_sharing_providers_alone_comes_once():
    """It can be found from the providers' own tree and from each tree they share with."""
    sharing = {5}
    shared = [
        Tree(5, [[5]], root_of={5: 5}, sharing=sharing),
        Tree(10, [[5, 10]], root_of={5: 5}, sharing=sharing),
        Tree(20, [[5]], root_of={5: 5}, sharing=sharing),
    ]
    found = [choice for _root, choice in candidates_in(PLAN, shared, RequestBudget())]
    assert found == [(5,), (10,)]
