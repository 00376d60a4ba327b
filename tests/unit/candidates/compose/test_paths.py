"""The first candidate of a tree is as compact as the group allocator's best placement."""

from hypothesis import given
from hypothesis import strategies as st

from placement.allocators.group.objective import Rules
from placement.allocators.group.place import place
from placement.allocators.group.tree import Capacity, Location, Requirement
from placement.candidates.budget import RequestBudget
from placement.candidates.compose.compact import FEW_COMBINATIONS, CompactFirst
from placement.domain.candidate_request import CandidateRequest, RequestGroup
from placement.domain.search_plan import plan_for
from placement.domain.tree import Tree
from tests.examples import examples
from tests.unit.candidates.searches import lay_out

LEVELS = ("numa", "pcie")
NODES = st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=3), min_size=1, max_size=3)
"""For each NUMA node the number of devices below each of its switches."""


@examples(30)
@given(NODES, st.integers(1, 5), st.booleans())
def test_the_first_candidate_touches_as_few_places_as_the_best_placement(nodes, groups, searches):
    locations, tree = both(nodes)
    wanted = Requirement(parts=tuple(Requirement(str(index), "gpu", {"cards": 1}) for index in range(groups)))
    best = place(locations, [wanted], Rules(distinct=True, levels=LEVELS))
    request = CandidateRequest(
        groups=tuple(RequestGroup(suffix=f"_{index}", resources={"PGPU": 1}) for index in range(groups)), isolate=True
    )
    composer = CompactFirst(
        plan_for(request), RequestBudget(), all_wanted=False, few=0 if searches else FEW_COMBINATIONS
    )
    found = composer.composed([tree])[0] if tree.options[0] else None
    assert (found is not None) == best.feasible
    assert found is None or found.counts == best.objective.touched


def both(nodes: list[list[int]]) -> tuple[Location, Tree]:
    """Return the same host as locations and as a tree of providers."""
    parents: dict[int, int | None] = {1: None}
    marks, devices, numa = {}, [], []
    for switches in nodes:
        node = added(parents, 1)
        marks[node] = 0b01
        below = []
        for count in switches:
            switch = added(parents, node)
            marks[switch] = 0b10
            own = [added(parents, switch) for _ in range(count)]
            devices += own
            gpus = tuple(Location(str(device), "gpu", {"cards": Capacity(1)}) for device in own)
            below.append(Location(str(switch), "pcie", children=gpus))
        numa.append(Location(str(node), "numa", children=tuple(below)))
    tree = Tree(1, [devices])
    lay_out(tree, parents, marks, dict.fromkeys(devices, 1.0))
    return Location(children=tuple(numa)), tree


def added(parents: dict[int, int | None], parent: int) -> int:
    provider = len(parents) + 1
    parents[provider] = parent
    return provider
