"""Trees that look the same, in random clouds of which every tree has a twin, perhaps with small differences."""

from dataclasses import replace
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from placement.candidates.budget import RequestBudget
from placement.candidates.canonical import Sketcher
from placement.candidates.explain.cloud import FilteredCloud, cloud_under
from placement.candidates.explain.explain import explain
from placement.candidates.explain.stages import stages, with_traits_apart
from placement.domain.candidate_request import CandidateRequest, RequestGroup
from placement.domain.facts import EqualStocks, Facts
from placement.domain.search_plan import plan_for
from tests.definition_of_candidates import Definition
from tests.examples import examples
from tests.small_clouds import AGGREGATES, MAX_PROVIDERS, Cloud, Inventory, Node, facts_of, situations


def with_twins(situation: tuple[CandidateRequest, Cloud], seed: int) -> tuple[CandidateRequest, Cloud]:
    """Return a situation where each tree has a twin in the same aggregates; some of their providers may differ."""
    (request, cloud), chance = situation, Random(seed)
    found = dict(cloud)
    for node in cloud.values():
        id_, parent, root = [one and one + MAX_PROVIDERS for one in (node.id, node.parent, node.root)]
        found[id_] = replace(node, id=id_, parent=parent, root=root)
    differing = chance.choice((with_other_usage, with_other_parent, in_other_aggregates))
    for node in [*found.values()]:
        if node.id not in cloud and chance.random() < 0.3:
            found[node.id] = differing(node, found, chance)
    return request, found


def with_other_usage(node: Node, _cloud: Cloud, chance: Random) -> Node:
    return replace(node, inventories={name: used(stock, chance) for name, stock in node.inventories.items()})


def used(stock: Inventory, chance: Random) -> Inventory:
    return replace(stock, used=chance.choice((0, 1, 2)))


def with_other_parent(node: Node, cloud: Cloud, chance: Random) -> Node:
    above = [other.id for other in cloud.values() if other.root == node.root and other.id < node.id]
    return replace(node, parent=chance.choice(above)) if above else node


def in_other_aggregates(node: Node, _cloud: Cloud, chance: Random) -> Node:
    return replace(node, aggregates=frozenset(chance.sample(AGGREGATES, 1)))


twins = st.builds(with_twins, situations, st.integers(0, 2**32))


def cloud_of(request: CandidateRequest, cloud: Cloud) -> FilteredCloud:
    return cloud_under(with_traits_apart(plan_for(request)), named_in(request, facts_of(cloud)))


def named_in(request: CandidateRequest, facts: Facts) -> Facts:
    """Return facts without the roots that a request does not name: these would tell their trees from all others."""
    named = {group.in_tree for group in request.groups}
    return replace(facts, roots={name: root for name, root in facts.roots.items() if name in named})


@examples(1000)
@given(twins)
def test_trees_that_look_the_same_differ_only_in_ids(situation):
    request, cloud = situation
    filtered = cloud_of(request, cloud)
    lookalikes = filtered._lookalikes
    for plan in (filtered.plan, *[stage.plan for stage in stages(filtered.plan)]):
        look_of, sketcher, search = lookalikes.look_of(plan), Sketcher(plan), filtered.search(plan)
        drawn = {}
        for root in sorted({node.root for node in cloud.values()}):
            form, providers = sketcher.sketch(search._tree(root))
            places = [lookalikes.members(root).index(provider) for provider in providers]
            assert drawn.setdefault(look_of(root), (form, places)) == (form, places)


@examples(300)
@given(twins)
def test_what_is_found_in_a_tree_is_read_off_for_its_twin(situation):
    request, cloud = situation
    filtered, definition = cloud_of(request, cloud), Definition(request, cloud)
    found = filtered.served(RequestBudget()).trees
    assert found.keys() == definition.trees()
    for root, choice in found.items():
        if choice is not None:
            placed = list(zip(definition.slots, choice, strict=True))
            assert all(provider in definition.options(slot, root) for slot, provider in placed)
            assert definition.is_candidate(root, placed)


@examples(300)
@given(twins)
def test_as_many_trees_are_left_as_trying_everything_finds(situation):
    request, cloud = situation
    assert explain(plan_for(request), named_in(request, facts_of(cloud))).found == len(
        Definition(request, cloud).trees()
    )


@examples(300)
@given(twins, st.integers(0, 300))
def test_no_tree_is_ruled_out_for_lack_of_steps(situation, steps):
    request, cloud = situation
    filtered = cloud_of(request, cloud)
    budget = RequestBudget(per_tree=steps, per_request=steps)
    served = filtered.search(filtered.plan).served(filtered.trees(), budget)
    assert Definition(request, cloud).trees() <= served.possible


def test_what_shares_with_a_tree_is_told_apart_by_its_own_tree_only_where_trees_may_not_mix():
    """Two pools share with each of three hosts: of one tree, of two, and one of two that is the host itself."""
    request = CandidateRequest(
        groups=(RequestGroup(resources={"DISK_GB": 1}), RequestGroup(suffix="_A", resources={"DISK_GB": 1}))
    )
    root_of = {11: 10, 12: 10, 21: 20, 3: 3}
    shares = {11: [1, 2, 3], 12: [1], 21: [2], 3: [3]}
    facts = Facts(stocks={"DISK_GB": [EqualStocks(9, 1, 9, 1, [*root_of])]}, root_of=root_of, shares=shares)
    looks = [looks_of(replace(request, combines_nested=mixes), facts) for mixes in (True, False)]
    assert [(one[1] == one[2], one[1] == one[3]) for one in looks] == [(True, False), (False, False)]


def looks_of(request: CandidateRequest, facts: Facts) -> dict[int, object]:
    filtered = cloud_under(plan_for(request), facts)
    look_of = filtered._lookalikes.look_of(filtered.plan)
    return {root: look_of(root) for root in (1, 2, 3)}
