"""The phases of the search for candidates one by one, on trees in memory."""

from dataclasses import replace
from itertools import product

import pytest

from placement.allocators.ranking_profile import RankingProfile
from placement.allocators.strategy_fit import Fit, Preference, Profile, ScoredNode
from placement.candidates.compose.slots import RequestBudget
from placement.candidates.ranking import Ranking, TreeScores, amounts_of, shared_by
from placement.candidates.search import candidates_in, found_candidates
from placement.candidates.tree_order import TreeOrder
from placement.domain.search_plan import CandidateRequest, RequestGroup, SearchLimits, plan_for
from placement.domain.tree import Tree
from tests.unit.candidates.searches import layout_of
from tests.unit.candidates.trees_in_memory import TreesInMemory

REQUEST = CandidateRequest(groups=(RequestGroup(suffix="_A", resources={"PGPU": 1}),))
PLAN = plan_for(REQUEST)
HOSTS = range(10, 1010, 10)
SPREAD = RankingProfile(strategy=Profile(fit=Fit({"PGPU": Preference("LeastAllocated")})))


def hosts() -> TreesInMemory:
    """Return a hundred hosts with two GPUs, each fuller than the one before."""
    trees = [Tree(root, [[root + 1, root + 2]]) for root in HOSTS]
    return TreesInMemory(PLAN, trees, {root: ScoredNode({"PGPU": 1000}, {"PGPU": root - 10}) for root in HOSTS})


def searched(
    reader: TreesInMemory, profile: RankingProfile | None = SPREAD, *, wanted: int | None = 3, depth_first: bool = False
) -> list:
    ranking = Ranking(profile, ("NUMA",)) if profile else None
    scores = TreeScores(amounts_of(reader.plan), ranking, shared=shared_by(reader)) if ranking else None
    order = TreeOrder(reader, scores, wanted=wanted) if scores else None
    budget = RequestBudget()
    found = found_candidates(reader, order, budget=budget, wanted=wanted, breadth_first=not depth_first)
    assert not budget.was_hit
    return found


def test_the_best_come_first_and_hardly_any_other_tree_is_read():
    reader = hosts()
    assert searched(reader) == [(10, (11,)), (20, (21,)), (30, (31,))]
    assert reader.trees_read == list(HOSTS)[:16]


def test_hardly_any_other_is_read_where_a_pool_gives_addresses_beside_two_groups_on_the_host():
    """GPUs are not shared, so a host provides both, which determines its score before anything is composed."""
    wanted = {"_A": {"PGPU": 1}, "_B": {"PGPU": 2}, "_IP": {"IPV4_ADDRESS": 1}}
    groups = tuple(RequestGroup(suffix=suffix, resources=resources) for suffix, resources in wanted.items())
    room = {(root + one, "PGPU"): 2.0 for root in HOSTS for one in (1, 2)}
    trees = [Tree(root, [[root + 1, root + 2]] * 2 + [[5]], room, sharing={5}, root_of={5: 5}) for root in HOSTS]
    totals = {root: ScoredNode({"PGPU": 1000}, {"PGPU": 0}) for root in HOSTS}
    reader = TreesInMemory(plan_for(CandidateRequest(groups=groups)), trees, totals, shares=True)
    assert searched(reader) == [(10, (11, 12, 5)), (20, (21, 22, 5)), (30, (31, 32, 5))]
    assert reader.trees_read == list(HOSTS)[:16]


def test_where_all_are_wanted_all_are_read_at_once_and_come_in_the_same_order():
    reader, few = hosts(), searched(hosts())
    everything = searched(reader, wanted=None)
    assert everything[:3] == few
    assert len(everything) == 200
    assert reader.trees_read == list(HOSTS)


def test_without_a_ranking_trees_are_read_by_id_as_they_are_wanted():
    reader = hosts()
    assert searched(reader, None) == [(10, (11,)), (20, (21,)), (30, (31,))]
    assert reader.trees_read == [10, 20, 30]
    assert searched(hosts(), None, depth_first=True) == [(10, (11,)), (10, (12,)), (20, (21,))]


def test_a_tree_comes_after_others_if_its_candidates_are_less_compact():
    """Two GPUs are in two NUMA nodes on the emptier host, in one on the other."""
    groups = tuple(RequestGroup(suffix=suffix, resources={"PGPU": 1}) for suffix in ("_A", "_B"))
    plan = plan_for(replace(REQUEST, groups=groups, isolate=True))
    trees = [Tree(10, [[13, 14]]), Tree(20, [[23, 24]])]
    parents = {10: None, 11: 10, 12: 10, 13: 11, 14: 12, 20: None, 21: 20, 23: 21, 24: 21}
    layout = layout_of(parents, {11: 1, 12: 1, 21: 1}, {13, 14, 23, 24}, levels=1)
    totals = {10: ScoredNode({"PGPU": 10}, {"PGPU": 0}), 20: ScoredNode({"PGPU": 10}, {"PGPU": 1})}
    assert [root for root, _choice in searched(TreesInMemory(plan, trees, totals, layout=layout))] == [20, 10, 20]


@pytest.mark.parametrize("profile", [None, SPREAD], ids=["by id", "best first"])
def test_an_answer_that_grows_too_large_says_that_it_is_incomplete(profile):
    limits = SearchLimits(placements=5)
    scores = TreeScores(amounts_of(PLAN), Ranking(profile)) if profile else None
    reader, budget = hosts(), RequestBudget()
    order = TreeOrder(reader, scores, wanted=None) if scores else None
    found = found_candidates(reader, order, budget=budget, wanted=None, breadth_first=True, limits=limits)
    assert len(found) == 5
    assert budget.was_hit


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
    of_disks = plan_for(CandidateRequest(groups=(RequestGroup(resources={"DISK_GB": 1}),)))
    sharing = {5}
    shared = [
        Tree(5, [[5]], root_of={5: 5}, sharing=sharing),
        Tree(10, [[5, 10]], root_of={5: 5}, sharing=sharing),
        Tree(20, [[5]], root_of={5: 5}, sharing=sharing),
    ]
    found = [choice for _root, choice in candidates_in(of_disks, shared, RequestBudget())]
    assert found == [(5,), (10,)]
