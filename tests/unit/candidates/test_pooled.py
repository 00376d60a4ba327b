"""The order of candidates on trees with sharing providers, compared with scoring and sorting all of them."""

from dataclasses import replace
from math import prod

from hypothesis import assume, given
from hypothesis import strategies as st

from placement.allocators.compactness import compactness
from placement.allocators.ranking_profile import RankingProfile
from placement.allocators.strategy_fit import Fit, Preference, Profile, Proportional, ScoredNode, Sra
from placement.candidates.compose.slots import RequestBudget, SlotComposer
from placement.candidates.ranking import Ranking, TreeScores, amounts_of, shared_by
from placement.candidates.search import found_candidates
from placement.candidates.tree_order import TreeOrder
from placement.domain.quantities import summed
from placement.domain.search_plan import Choice, SearchLimits, plan_for
from placement.domain.tree import Tree
from tests.examples import examples
from tests.unit.allocators.strategy_fit_definitions import assess
from tests.unit.candidates.searches import CLASSES, moved, requests, searches_of, with_places
from tests.unit.candidates.test_ranking import STEP, Cloud
from tests.unit.candidates.trees_in_memory import TreesInMemory

A_FEW_AT_A_TIME = SearchLimits(first_trees=1, growth=2)


@st.composite
def clouds(draw) -> Cloud:
    """Draw up to five hosts, each with a pool that may serve other trees; a host may share something itself."""
    plan = plan_for(draw(requests()))
    hosts = [moved(draw(with_places(searches_of(plan))), index * STEP) for index in range(draw(st.integers(1, 5)))]
    root_of = {provider: root for tree in hosts for provider, root in tree.root_of.items()}
    if draw(st.booleans()):
        root_of[hosts[0].root] = hosts[0].root
    facts = {provider: tree for tree in hosts for provider in root_of if provider in tree.parents}
    serves = {
        provider: [demand for demand, row in enumerate(tree.options) if provider in row]
        for provider, tree in facts.items()
    }
    trees = []
    for tree in hosts:
        guests = [provider for provider in root_of if provider not in tree.parents and draw(st.booleans())]
        trees.append(with_guests(tree, guests, serves, facts))
    for pool, root in root_of.items():
        if root == pool and len(serves[pool]) == len(plan.demands) and facts[pool].root != pool:
            trees.append(with_guests(Tree(pool, [[] for _ in plan.demands]), [pool], serves, facts))
    trees = [
        replace(tree, root_of=root_of, sharing=root_of.keys()) for tree in sorted(trees, key=lambda tree: tree.root)
    ]
    return Cloud(plan, trees, draw(totals([tree.root for tree in trees])))


def with_guests(tree: Tree, guests: list[int], serves: dict[int, list[int]], facts: dict[int, Tree]) -> Tree:
    """Return a tree with guests, providers of other trees that share with it."""
    room, met, parents = dict(tree.room), dict(tree.met), dict(tree.parents)
    options = [[*row, *[one for one in guests if index in serves[one]]] for index, row in enumerate(tree.options)]
    for guest in guests:
        of = facts[guest]
        room |= {place: amount for place, amount in of.room.items() if place[0] == guest}
        met |= {guest: of.met.get(guest, 0)}
        parents |= {guest: None}
    return replace(tree, options=options, room=room, met=met, parents=parents)


@st.composite
def totals(draw, roots: list[int]) -> dict[int, ScoredNode]:
    """Draw the capacity and usage of trees; sometimes a tree has none of the summed classes, or too little."""
    found = {}
    for root in roots:
        if draw(st.integers(0, 6)):
            capacity = {name: draw(st.integers(0, 8)) for name in CLASSES}
            found[root] = ScoredNode(capacity, {name: draw(st.integers(0, 4)) for name in CLASSES})
    return found


LEAST, MOST = Preference("LeastAllocated"), Preference("MostAllocated")
FITS = [None, Fit(dict.fromkeys(CLASSES, LEAST)), Fit(dict.fromkeys(CLASSES, MOST)), Fit({"VCPU": MOST, "PGPU": LEAST})]
PROFILES = st.builds(
    RankingProfile,
    strategy=st.builds(
        Profile,
        fit=st.sampled_from(FITS),
        sra=st.sampled_from([None, Sra({"PGPU": 1}), Sra({"PGPU": 1}, mode="upstream")]),
        proportional=st.sampled_from(
            [
                None,
                *[Proportional({"PGPU": {"VCPU": 2}}, "own", mode) for mode in ("last", "filter")],
                Proportional({"PGPU": {"VCPU": 1}}, "all", "last"),
            ]
        ),
    ),
    compactness=st.sampled_from([0, 3, 10]),
)


def charged(cloud: Cloud, tree: Tree, choice: Choice) -> frozenset[int]:
    """Return the roots of the trees a candidate is charged to: its own, or those of pools if only they serve it."""
    takers = [provider for slot, provider in zip(cloud.plan.slots, choice, strict=True) if slot.resources]
    if all(provider in tree.sharing for provider in takers):
        return frozenset(tree.root_of[provider] for provider in takers)
    return frozenset([tree.root])


def is_of_pools(cloud: Cloud, tree: Tree, choice: Choice) -> bool:
    return all(
        provider in tree.sharing for slot, provider in zip(cloud.plan.slots, choice, strict=True) if slot.resources
    )


def own_part(cloud: Cloud, tree: Tree, choice: Choice) -> dict[str, int]:
    """Return what is taken from the trees that a candidate is charged to."""
    own: dict[str, int] = {}
    roots = charged(cloud, tree, choice)
    for slot, provider in zip(cloud.plan.slots, choice, strict=True):
        if tree.root_of.get(provider, tree.root) in roots:
            for name, amount in slot.resources:
                own[name] = own.get(name, 0) + amount
    return own


def counts_of(cloud: Cloud, tree: Tree, choice: Choice) -> tuple[int, ...]:
    touched = 0
    for slot, provider in zip(cloud.plan.slots, choice, strict=True):
        if slot.resources:
            touched |= tree.places.of.get(provider, 0)
    return tree.places.counts(touched) if tree.places.of else ()


def rank(cloud: Cloud, profile: RankingProfile, tree: Tree, choice: Choice) -> tuple[bool, float]:
    """Return whether a candidate breaks a proportion, and its negated total."""
    requested, own = amounts_of(cloud.plan), own_part(cloud, tree, choice)
    counts = () if is_of_pools(cloud, tree, choice) else counts_of(cloud, tree, choice)
    nodes = [cloud.totals[root] for root in charged(cloud, tree, choice) if root in cloud.totals]
    node = ScoredNode(summed([one.allocatable for one in nodes]), summed([one.used for one in nodes]))
    verdict = assess(profile.strategy, requested, node, own)
    points = float(verdict.total) + profile.compactness * compactness(counts)
    total = 100 * points / float(profile.maximum) if profile.maximum else 0.0
    return not verdict.keeps_proportion, -round(total, 6)


def shared_options(cloud: Cloud, tree: Tree) -> list[list[int]]:
    taking = {slot.demand for slot in cloud.plan.slots if slot.resources}
    return [
        [one for one in row if one in tree.sharing or index not in taking] for index, row in enumerate(tree.options)
    ]


Line = list[tuple[tuple[bool, float], Choice]]
"""The candidates of one tree, or those served only by pools of the same trees, with their ranks."""

LineName = tuple[bool, frozenset[int]]
"""Whether only pools serve it, and the trees that are charged."""


def lines_by_definition(cloud: Cloud, profile: RankingProfile) -> dict[LineName, Line]:
    """Return all candidates of each line, the best first."""
    lines: dict[LineName, Line] = {}
    for tree in TreesInMemory(*cloud).all_trees():
        for options in (tree.options, shared_options(cloud, tree)):
            for choice in SlotComposer(cloud.plan, RequestBudget()).choices(replace(tree, options=options)):
                name = is_of_pools(cloud, tree, choice), charged(cloud, tree, choice)
                one = rank(cloud, profile, tree, choice), choice
                if name[0] == (options is not tree.options) and not (one[0][0] and profile.filters):
                    lines.setdefault(name, []).append(one)
    return {name: sorted({*line}) for name, line in lines.items()}


def search(cloud: Cloud, profile: RankingProfile, wanted: int | None) -> list[tuple[int, Choice]]:
    reader = TreesInMemory(*cloud, shares=True)
    scores = TreeScores(amounts_of(cloud.plan), Ranking(profile), shared=shared_by(reader))
    order = TreeOrder(reader, scores, wanted=wanted, limits=A_FEW_AT_A_TIME)
    return found_candidates(reader, order, budget=RequestBudget(), wanted=wanted, breadth_first=True)


def lines_of(found: list[tuple[int, Choice]], cloud: Cloud, profile: RankingProfile) -> dict[LineName, Line]:
    """Return the candidates found in each line, in the order found."""
    trees = {tree.root: tree for tree in cloud.trees}
    lines: dict[LineName, Line] = {}
    for root, choice in found:
        name = is_of_pools(cloud, trees[root], choice), charged(cloud, trees[root], choice)
        lines.setdefault(name, []).append((rank(cloud, profile, trees[root], choice), choice))
    return lines


@examples(40)
@given(clouds(), PROFILES)
def test_candidates_come_by_what_they_take_of_their_trees(cloud, profile):
    """With any limit, and however few trees are read at a time. Totals are equal up to rounding."""
    assume(sum(prod(len(tree.options[slot.demand]) for slot in cloud.plan.slots) for tree in cloud.trees) < 500)
    found, expected = search(cloud, profile, None), lines_by_definition(cloud, profile)
    lines = lines_of(found, cloud, profile)
    assert {name: sorted(line) for name, line in lines.items()} == expected
    for line in ([line[0] for line in lines.values()], *lines.values()):
        ranks = [one for one, _choice in line]
        assert ranks == sorted(ranks)
    for limit in (1, 2, 3, 10):
        assert [choice for _root, choice in search(cloud, profile, limit)] == [
            choice for _root, choice in found[:limit]
        ]
