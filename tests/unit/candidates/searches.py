"""The trees of clouds in memory as a search sees them, with what they have by definition."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import NamedTuple

from hypothesis import strategies as st

from placement.candidates.serving import Serving
from placement.candidates.tree_reader import TreeReader
from placement.domain.search_plan import CandidateRequest, Plan, RequestGroup, plan_for
from placement.domain.tree import Tree
from tests.definition_of_candidates import Definition
from tests.small_clouds import (
    CLASSES,
    TRAITS,
    Cloud,
    Inventory,
    Node,
    SetsInMemory,
    columns_of,
    ids_of,
    random_situation,
)

OUTER, INNER = LEVELS = TRAITS[1], TRAITS[0]
"""Any trait may represent a level."""


def with_many_candidates(seed: int) -> tuple[CandidateRequest, Cloud]:
    """Return a request with few conditions on providers, and a cloud mostly of one tree in which most of them serve."""
    chance, (request, cloud) = Random(seed), random_situation(seed)
    groups = [
        group
        if chance.random() < 0.2
        else RequestGroup(suffix=group.suffix, resources=dict.fromkeys(group.resources, 1))
        for group in request.groups
    ]
    joined = chance.random() < 0.8
    nodes = [
        replace(
            node,
            inventories={name: Inventory(chance.randint(1, 3)) for name in CLASSES if chance.random() < 0.8},
            parent=node.parent or (1 if joined and node.id > 1 else None),
            root=1 if joined else node.root,
        )
        for node in cloud.values()
        if node.id <= 6
    ]
    request = replace(request, groups=tuple(groups), root_required=frozenset(), root_forbidden=frozenset())
    return request, {node.id: node for node in nodes}


situations = st.integers(0, 2**32).map(lambda seed: (with_many_candidates if seed % 4 else random_situation)(seed))


class Search(NamedTuple):
    """A request, the trees that have a provider for each of its demands, and the definition."""

    plan: Plan
    trees: list[Tree]
    definition: Definition

    def places(self, root: int, provider: int) -> tuple[int | None, ...]:
        """Return for each level the nearest place at or above a provider; those of other trees lie in none."""
        cloud, above = self.definition.cloud, self.definition.ancestry(provider)
        if cloud[provider].root != root:
            return (None,) * len(LEVELS)
        return tuple(next((id_ for id_ in above if trait in cloud[id_].traits), None) for trait in LEVELS)

    def counts(self, root: int, choice: tuple[int, ...]) -> tuple[int, ...]:
        """Return how many places of each level the providers of a candidate lie in, at least 1."""
        consuming = [one for slot, one in zip(self.plan.slots, choice, strict=True) if slot.resources]
        by_level = zip(*[self.places(root, provider) for provider in consuming], strict=True)
        return tuple(max(1, len({*places} - {None})) for places in by_level)


def search_in(request: CandidateRequest, cloud: Cloud, levels: Sequence[str] = LEVELS) -> Search:
    plan, columns = plan_for(request), columns_of(cloud)
    ids = replace(ids_of(cloud), levels=tuple(ids_of(cloud).traits[name] for name in levels))
    serving = Serving(plan, ids, columns=columns, sets=SetsInMemory(cloud, ids, columns.providers))
    reader = TreeReader(serving, lambda names: {name: ids.classes[name] for name in names}, with_places=bool(levels))
    return Search(plan, reader.all_trees(), Definition(request, cloud))


def groups_of(amounts: Sequence[int], *, isolate: bool = True) -> CandidateRequest:
    """Return a request of one group for each amount."""
    groups = [RequestGroup(suffix=f"_{number}", resources={"VCPU": amount}) for number, amount in enumerate(amounts)]
    return CandidateRequest(groups=tuple(groups), isolate=isolate)


def host(switches: int, each: int, *, units: int = 1) -> Cloud:
    """Return a host of two NUMA nodes with this many switches in total, each with this many devices."""
    nodes = [Node(1, None, 1), *[Node(id_, 1, 1, {}, frozenset([OUTER])) for id_ in (2, 3)]]
    nodes += [Node(10 + n, 2 + n % 2, 1, {}, frozenset([INNER])) for n in range(switches)]
    devices = range(switches * each)
    nodes += [Node(100 + n, 10 + n // each, 1, {"VCPU": Inventory(units)}) for n in devices]
    return {node.id: node for node in nodes}
