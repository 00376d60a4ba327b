"""The order of trees, compared with composing and sorting everything."""

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.allocators.compactness import Counts, compactness
from placement.allocators.ranking_profile import RankingProfile
from placement.allocators.strategy_fit import Fit, Preference, Profile, Proportional, ScoredNode, Sra
from placement.candidates.compose.compact import CompactFirst
from placement.candidates.compose.slots import RequestBudget
from placement.candidates.ranking import Ranking, TreeScores, amounts_of, shared_by
from placement.candidates.search import found_candidates
from placement.candidates.tree_order import TreeOrder
from placement.domain.search_plan import LIMITS, Choice, Plan, SearchLimits, plan_for
from placement.domain.tree import Tree
from tests.examples import examples
from tests.unit.allocators.strategy_fit_definitions import assess
from tests.unit.candidates.searches import CLASSES, devices, moved, requests, searches_of, with_places
from tests.unit.candidates.trees_in_memory import TreesInMemory

STEP = 100  # The gap between the ids of one tree and the next.


class Cloud(NamedTuple):
    """Trees of one plan, with the total capacity and usage of some of them."""

    plan: Plan
    trees: list[Tree]
    totals: dict[int, ScoredNode]


@st.composite
def clouds(draw) -> Cloud:
    """Draw up to eight trees; sometimes one has none of the summed classes."""
    plan = plan_for(draw(requests()))
    trees, sums = [], {}
    for index in range(draw(st.integers(1, 8))):
        tree = draw(with_places(searches_of(plan)))
        trees.append(moved(tree, index * STEP))
        capacity = {name: draw(st.integers(0, 6)) for name in CLASSES}
        if draw(st.integers(0, 6)):
            used = {name: draw(st.integers(0, 4)) for name in CLASSES}
            sums[trees[-1].root] = ScoredNode(capacity, used)
    return Cloud(plan, trees, sums)


FITS = st.sampled_from(
    [None, Fit(), Fit({"VCPU": Preference("MostAllocated"), "PGPU": Preference("LeastAllocated", 2)})]
)
RARE = st.sampled_from([None, Sra({"PGPU": 1})])
RESERVES = st.sampled_from([None, *[Proportional({"PGPU": {"VCPU": 2}}, "own", mode) for mode in ("last", "filter")]])
PROFILES = st.builds(
    RankingProfile,
    strategy=st.builds(Profile, fit=FITS, sra=RARE, proportional=RESERVES),
    compactness=st.sampled_from([0, 3, 10]),
)
RANKINGS = st.builds(
    Ranking, PROFILES, near_equal=st.sampled_from([0.0, 20.0]), seed=st.one_of(st.none(), st.integers(0, 99))
)


ONE_BY_ONE = SearchLimits(first_trees=1, growth=1)


def ranked(cloud: Cloud, ranking: Ranking, wanted: int | None, *, limits: SearchLimits = LIMITS) -> list:
    reader = TreesInMemory(*cloud, shares=True)
    scores = TreeScores(amounts_of(cloud.plan), ranking, shared=shared_by(reader))
    order = TreeOrder(reader, scores, wanted=wanted, limits=limits)
    return found_candidates(reader, order, budget=RequestBudget(), wanted=wanted, breadth_first=True)


class Expected(NamedTuple):
    """A candidate by definition: when it comes, what its score is made of, and what it is.

    Args:
        rank: in which round it comes, whether its tree breaks a proportion, and the negated score of the tree.
        parts: what the score is made of: the tree's sums, and the places that its best candidate touches. Sums of
            different parts that should be equal may differ in their last digits, and then decide.
        candidate: the tree's root and the choice.
    """

    rank: tuple[int, bool, float]
    parts: tuple[ScoredNode, Counts]
    candidate: tuple[int, Choice]


def sorted_by_definition(cloud: Cloud, ranking: Ranking) -> list[Expected]:
    """Compose every tree, score it, and take one candidate of each in turn."""
    found = []
    scores = TreeScores(amounts_of(cloud.plan), ranking)
    nothing = ScoredNode(dict.fromkeys(CLASSES, 0), dict.fromkeys(CLASSES, 0))
    for tree in TreesInMemory(*cloud).all_trees():
        node = cloud.totals.get(tree.root, nothing)
        fails, total, composed = score_by_definition(cloud.plan, ranking, tree, node)
        if composed is not None and not (fails and scores.filters):
            score = total + jitter(cloud.plan, ranking, tree.root)
            for turn, choice in enumerate(composed.choices):
                rank = turn, fails, -round(score, 6)
                found.append(Expected(rank, (node, composed.counts), (tree.root, choice)))
    return sorted(found, key=lambda one: (one.rank, one.candidate[0]))


def assert_is_head(found: list, expected: list[Expected]) -> None:
    """Compare an answer with the head of all candidates in order; trees that score the same come by their roots."""
    known = {one.candidate: one for one in expected}
    given = [known[candidate] for candidate in found]
    assert [one.rank for one in given] == [one.rank for one in expected[: len(given)]]
    for first in given:
        alike = [one for one in expected if (one.rank, one.parts) == (first.rank, first.parts)]
        taken = [one for one in given if one in alike]
        assert taken == alike[: len(taken)]


def score_by_definition(plan: Plan, ranking: Ranking, tree: Tree, node: ScoredNode):
    verdict = assess(ranking.profile.strategy, amounts_of(plan), node, amounts_of(plan))
    composed = CompactFirst(plan, RequestBudget(), all_wanted=True).composed_in(tree)
    if composed is None:
        return False, 0.0, None
    points = float(verdict.total) + ranking.profile.compactness * compactness(composed.counts)
    maximum = float(ranking.profile.maximum)
    return not verdict.keeps_proportion, 100 * points / maximum if maximum else 0.0, composed


def jitter(plan: Plan, ranking: Ranking, root: int) -> float:
    """Return the random part of a tree's score: the difference from the same ranking without randomness."""
    steady = Ranking(ranking.profile, ranking.levels, ranking.near_equal, None)
    row = (root, *[0] * 2 * len(TreeScores(amounts_of(plan), ranking).classes))
    (_, moved_by, _), (_, plain, _) = (TreeScores(amounts_of(plan), one).key_of_whole(row) for one in (ranking, steady))
    assert 0 <= plain - moved_by < max(ranking.near_equal, 1e-9)
    return plain - moved_by


@examples(45)
@given(clouds(), RANKINGS)
def test_the_answer_is_the_head_of_composing_and_sorting_everything(cloud, ranking):
    """However few trees are read at a time."""
    expected = sorted_by_definition(cloud, ranking)
    everything = ranked(cloud, ranking, None, limits=ONE_BY_ONE)
    assert len(everything) == len(expected)
    assert_is_head(everything, expected)
    for limit in (1, 2, 3, 10):
        found = ranked(cloud, ranking, limit, limits=ONE_BY_ONE)
        assert len(found) == min(limit, len(expected))
        assert_is_head(found, expected)


@pytest.mark.parametrize("seed", range(20))
def test_chance_may_move_a_tree_that_has_nothing_before_others_that_score_nothing(seed):
    """A tree not read yet may come first, but only as far as the random part can move it."""
    plan, tree = devices(1, 1)
    ranking = Ranking(RankingProfile("", Profile(fit=Fit({"PGPU": Preference("MostAllocated")})), 0), (), 20.0, seed)
    full = ScoredNode({"PGPU": 1}, {"PGPU": 1})
    trees = [moved(tree, index * STEP) for index in range(4)]
    cloud = Cloud(plan, trees, {tree.root: full for tree in trees[:-1]})
    assert ranked(cloud, ranking, 1, limits=SearchLimits(first_trees=1)) == ranked(cloud, ranking, None)[:1]
