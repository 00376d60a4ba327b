"""The order of trees, compared with composing and sorting everything."""

import copy
from dataclasses import dataclass, field
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.allocators.compactness import compactness
from placement.allocators.ranking_profile import RankingProfile
from placement.allocators.strategy_fit import Fit, Node, Preference, Profile, Proportional, Sra, assess
from placement.candidates import reading
from placement.candidates.budget import RequestBudget
from placement.candidates.compose.compact import CompactFirst
from placement.candidates.ranking import Ranking, TreeScores, all_best_first, amounts_of, best_first
from placement.candidates.reading import ByScore, by_root
from placement.candidates.walk import walked
from placement.domain.search_plan import Plan, plan_for
from placement.domain.tree import Tree, TreesRead
from tests.examples import examples
from tests.unit.candidates.searches import CLASSES, devices, moved, requests, searches_of, with_places

STEP = 100  # Between the ids of one tree and those of the next.


@dataclass
class Cloud:
    """Trees of one plan, the sums of some of them, and what was read."""

    plan: Plan
    trees: list[Tree]
    sums: dict[int, dict[str, Node]]
    most_listed: int = 1000
    read: list[int] = field(default_factory=list)

    def chunks(self, wanted):
        for tree in self.trees if wanted is not None else ():
            yield self.trees_of([tree.root]), tree.root
        if wanted is None:
            yield self.all_trees(), self.trees[-1].root

    def trees_of(self, roots):
        self.read += roots
        return TreesRead([copy.copy(tree) for tree in self.trees if tree.root in roots])

    def all_trees(self):
        return self.trees_of([tree.root for tree in self.trees])

    def rows(self, classes):
        return [
            (root, *[node.allocatable[name] for name in classes], *[node.used[name] for name in classes])
            for root, node in self.sums.items()
        ]


@st.composite
def clouds(draw) -> Cloud:
    """Up to eight trees; one in a while has nothing of what is summed up."""
    plan = plan_for(draw(requests()))
    trees, sums = [], {}
    for index in range(draw(st.integers(1, 8))):
        tree = draw(with_places(searches_of(plan)))
        trees.append(moved(tree, index * STEP))
        capacity = {name: draw(st.integers(0, 6)) for name in CLASSES}
        if draw(st.integers(0, 6)):
            used = {name: draw(st.integers(0, 4)) for name in CLASSES}
            sums[trees[-1].root] = Node(capacity, used)
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


def ranked(cloud: Cloud, ranking: Ranking, wanted: int | None) -> list:
    scores = TreeScores(amounts_of(cloud.plan), ranking)
    compact = CompactFirst(cloud.plan, RequestBudget(), all_wanted=wanted is None)
    if scores.tell_trees_apart:
        portions = ByScore(scores, cloud.rows(scores.classes), cloud, complete=False).portions(wanted)
    else:
        portions = by_root(scores, cloud, wanted)
    if wanted is None:
        best = all_best_first(portions, compact.all_composed, scores.lost)
    else:
        best = best_first(portions, compact.composed, scores.lost)
    return list(islice(walked(best, breadth_first=True), wanted))


def sorted_by_definition(cloud: Cloud, ranking: Ranking) -> list:
    """Compose every tree, score it, and take one candidate of each in turn."""
    found = []
    scores = TreeScores(amounts_of(cloud.plan), ranking)
    nothing = Node(dict.fromkeys(CLASSES, 0), dict.fromkeys(CLASSES, 0))
    for tree in cloud.all_trees().trees:
        node = cloud.sums.get(tree.root, nothing)
        fails, score, composed = score_by_definition(cloud.plan, ranking, tree, node)
        if composed is not None and not (fails and scores.filters):
            score += jitter(cloud.plan, ranking, tree.root)
            found.append((fails, -round(score, 6), tree.root, list(composed)))
    found.sort()
    rounds = max((len(choices) for *_key, choices in found), default=0)
    return [
        (root, choices[turn])
        for turn in range(rounds)
        for _fails, _score, root, choices in found
        if turn < len(choices)
    ]


def score_by_definition(plan: Plan, ranking: Ranking, tree: Tree, node: Node):
    verdict = assess(ranking.profile.strategy, amounts_of(plan), node)
    composed = CompactFirst(plan, RequestBudget(), all_wanted=True).composed(tree)
    if composed is None:
        return False, 0.0, None
    points = float(verdict.total) + ranking.profile.compactness * compactness(composed.counts)
    maximum = float(ranking.profile.maximum)
    return not verdict.keeps_proportion, 100 * points / maximum if maximum else 0.0, composed.choices


def jitter(plan: Plan, ranking: Ranking, root: int) -> float:
    """Return what chance adds to a tree: the difference to the same ranking without chance."""
    steady = Ranking(ranking.profile, ranking.levels, ranking.near_equal, None)
    (_, moved_by, _), (_, plain, _) = (
        TreeScores(amounts_of(plan), one).key_of_nothing(root) for one in (ranking, steady)
    )
    assert 0 <= plain - moved_by < max(ranking.near_equal, 1e-9)
    return plain - moved_by


@examples(70)
@given(clouds(), RANKINGS)
def test_the_answer_is_the_head_of_composing_and_sorting_everything(cloud, ranking):
    """However few trees are read at a time."""
    expected = sorted_by_definition(cloud, ranking)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "FEWEST", 1)
        patch.setattr(reading, "GROWTH", 1)
        assert ranked(cloud, ranking, None) == expected
        for limit in (1, 2, 3, 10):
            assert ranked(cloud, ranking, limit) == expected[:limit]


@pytest.mark.parametrize("seed", range(20))
def test_chance_may_move_a_tree_that_has_nothing_before_others_that_score_nothing(seed, monkeypatch):
    """What is still unread may come first, by no more than chance can move it."""
    monkeypatch.setattr(reading, "FEWEST", 1)
    plan, tree = devices(1, 1)
    ranking = Ranking(RankingProfile("", Profile(fit=Fit({"PGPU": Preference("MostAllocated")})), 0), (), 20.0, seed)
    full = Node({"PGPU": 1}, {"PGPU": 1})
    trees = [moved(tree, index * STEP) for index in range(4)]
    cloud = Cloud(plan, trees, {tree.root: full for tree in trees[:-1]})
    assert ranked(cloud, ranking, 1) == ranked(cloud, ranking, None)[:1]
