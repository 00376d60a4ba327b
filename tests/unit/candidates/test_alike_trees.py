"""Trees that are alike, in random clouds of which every tree has a twin, perhaps with small differences."""

from dataclasses import replace
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from placement.candidates.compose.slots import RequestBudget
from placement.candidates.explain.alike_trees import AlikeTrees, SlotSearch, serving_trees
from placement.candidates.explain.conditions import ConditionKind, with_traits_apart
from placement.candidates.explain.explain import explain
from placement.candidates.explain.masks import CloudMasks
from placement.domain.search_plan import CandidateRequest, plan_for
from tests.definition_of_candidates import Definition
from tests.examples import examples
from tests.small_clouds import AGGREGATES, MAX_PROVIDERS, Cloud, Inventory, Node, masks_of, situations


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


@examples(80)
@given(twins)
def test_what_is_found_in_a_tree_is_found_in_its_twin(situation):
    request, cloud = situation
    definition = Definition(request, cloud)
    masked = CloudMasks(with_traits_apart(plan_for(request)), masks_of(request, cloud))
    found = serving_trees(AlikeTrees(masked), SlotSearch(masked.plan, RequestBudget()), masked.trees)
    roots = masked.providers.roots
    assert {*roots[found.trees].tolist()} == definition.trees()


@examples(30)
@given(twins)
def test_without_a_near_miss_twins_serve_alike(situation):
    """Trees that are alike with all conditions may not be without one of them."""
    request, cloud = situation
    for near_miss in explain(plan_for(request), masks_of(request, cloud)).near_misses:
        if near_miss.condition.kind not in (ConditionKind.RESOURCE, ConditionKind.GROUP):
            assert near_miss.trees == len(Definition(request, cloud, near_miss.condition).trees()), near_miss
