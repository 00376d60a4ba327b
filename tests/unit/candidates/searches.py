"""Random requests with small trees for them, and their candidates by definition."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from itertools import product

import numpy as np
from hypothesis import strategies as st

from placement.candidates.tree_reader import Layout
from placement.cloud.providers import NO_PARENT, ProviderColumns
from placement.domain.places import Places, true_roots
from placement.domain.search_plan import CandidateRequest, Plan, RequestGroup, plan_for
from placement.domain.tree import Tree

OUTER, INNER = 0b111, 0b111111000
MASKS = (0, 0b1, 0b10, 0b100, 0b1001, 0b10001, 0b100010, 0b1000010, 0b10000100, 0b100000100)
"""The possible places of a provider: none, an outer one, or one of the two inside an outer one as well."""

CLASSES = ("VCPU", "PGPU")
TRAITS = ("A", "B")


@st.composite
def requests(draw) -> CandidateRequest:
    """A small request; at least one group asks for resources."""
    suffixes = draw(st.lists(st.sampled_from(["_1", "_2", "_3", "_4"]), unique=True, max_size=4))
    amounts = st.dictionaries(st.sampled_from(CLASSES), st.integers(1, 2), min_size=1)
    groups = [RequestGroup(suffix=suffix, resources=draw(amounts)) for suffix in suffixes]
    if not groups or draw(st.booleans()):
        wanted = draw(st.lists(st.sampled_from(TRAITS), unique=True))
        groups.append(RequestGroup(resources=draw(amounts), required=tuple(frozenset({name}) for name in wanted)))
    same_subtree = []
    if len(suffixes) > 1:
        same_subtree = draw(st.lists(st.sets(st.sampled_from(suffixes), min_size=1).map(frozenset), max_size=2))
    return CandidateRequest(
        groups=tuple(groups),
        isolate=draw(st.booleans()),
        same_subtree=tuple(same_subtree),
        combines_nested=draw(st.integers(0, 4)) > 0,
    )


@st.composite
def searches(draw) -> tuple[Plan, Tree]:
    """Draw a plan and a tree for it."""
    plan = plan_for(draw(requests()))
    return plan, draw(searches_of(plan))


@st.composite
def searches_of(draw, plan: Plan) -> Tree:
    """A tree of up to six providers, one of which belongs to another tree."""
    providers = list(range(1, draw(st.integers(1, 6)) + 1))
    parents: dict[int, int | None] = {1: None}
    for provider in providers[1:]:
        parents[provider] = draw(st.sampled_from(providers[: provider - 1]))
    foreign = 9
    parents[foreign] = None
    everyone = [*providers, foreign]
    fits = st.lists(st.sampled_from(everyone), unique=True, min_size=1).map(sorted)
    options = [draw(fits) for _ in plan.demands]
    room = {(provider, name): float(draw(st.integers(2, 4))) for provider in everyone for name in plan.contended}
    met = {provider: draw(st.integers(0, 2 ** len(plan.trait_sets) - 1)) for provider in everyone}
    return Tree(1, options, room=room, met=met, parents=parents, root_of={foreign: foreign})


@st.composite
def with_places(draw, trees: st.SearchStrategy[Tree]) -> Tree:
    """Draw the same trees, with some providers as places of levels."""
    tree = draw(trees)
    of = {provider: draw(st.sampled_from(MASKS)) for provider in tree.parents if provider not in tree.root_of}
    places = Places({provider: mask for provider, mask in of.items() if mask}, (OUTER, INNER))
    around = {provider: float(draw(st.integers(0, 3))) for row in tree.options for provider in row}
    if places.masks:  # As in the store: a tree without places stays as it is.
        tree.lay_out(places, around)
    return tree


@st.composite
def searches_with_places(draw) -> tuple[Plan, Tree]:
    """Draw a plan and a tree of this kind for it."""
    plan = plan_for(draw(requests()))
    return plan, draw(with_places(searches_of(plan)))


def devices(groups: int, count: int, *, isolate: bool = True) -> tuple[Plan, Tree]:
    """Return a plan of ``groups`` one-unit groups and a tree of ``count`` one-unit devices."""
    request = CandidateRequest(
        groups=tuple(RequestGroup(suffix=f"_{i}", resources={"PGPU": 1}) for i in range(groups)), isolate=isolate
    )
    plan = plan_for(request)
    providers = list(range(1, count + 1))
    return plan, Tree(1, [providers], room={(provider, "PGPU"): 1.0 for provider in providers})


def lay_out(tree: Tree, parents: dict[int, int | None], level_bits: dict[int, int], fits: dict[int, float]) -> None:
    """Record in a tree where its providers are; ``level_bits`` has, for each of two places, its levels as bits."""
    layout = layout_of(parents, level_bits, fits, levels=2)
    tree.lay_out(layout.places, layout.around(np.array([fits[provider] for provider in sorted(fits)])))


def layout_of(
    parents: Mapping[int, int | None], level_bits: Mapping[int, int], providers: Collection[int], *, levels: int
) -> Layout:
    """Return where providers lie, given which are places of which levels, as bits."""
    roots = true_roots(parents)
    ids = sorted(parents, key=lambda provider: (roots[provider], provider))
    columns = ProviderColumns.sorted_from(
        np.array([roots[provider] for provider in ids]),
        np.array(ids),
        np.array([parents[provider] or NO_PARENT for provider in ids]),
    )
    bits = np.array([level_bits.get(provider, 0) for provider in ids])
    at = np.sort(columns.positions([*providers]))
    return Layout(columns, at, [bits >> level & 1 == 1 for level in range(levels)])


def moved(tree: Tree, by: int) -> Tree:
    """Return a tree that is the same except for its ids."""
    return Tree(
        tree.root + by,
        [[provider + by for provider in row] for row in tree.options],
        room={(provider + by, name): room for (provider, name), room in tree.room.items()},
        met={provider + by: mask for provider, mask in tree.met.items()},
        parents={child + by: above and above + by for child, above in tree.parents.items()},
        root_of={provider + by: root + by for provider, root in tree.root_of.items()},
        places=Places({p + by: mask for p, mask in tree.places.masks.items()}, tree.places.levels),
    )


def brute_force(plan: Plan, tree: Tree) -> set[tuple[int, ...]]:
    """Return every choice that satisfies the definitions, by checking all of them."""
    rows = [tree.options[slot.demand] for slot in plan.slots]
    return {choice for choice in product(*rows) if is_candidate(plan, tree, choice)}


def is_candidate(plan: Plan, tree: Tree, choice: tuple[int, ...]) -> bool:
    placed = list(zip(plan.slots, choice, strict=True))
    granular = [provider for slot, provider in placed if slot.is_granular]
    if plan.request.isolate and len(set(granular)) < len(granular):
        return False
    taken: dict[tuple[int, str], int] = defaultdict(int)
    for slot, provider in placed:
        for name, amount in slot.resources:
            taken[provider, name] += amount
    if any(amount > tree.room[key] for key, amount in taken.items() if key[1] in plan.contended):
        return False
    for suffixes in plan.request.same_subtree:
        members = {provider for slot, provider in placed if slot.suffix in suffixes}
        if not any(all(head in tree.ancestry(other) for other in members) for head in members):
            return False
    together = 0
    for slot, provider in placed:
        if not slot.is_granular:
            together |= tree.met[provider]
    if together != 2 ** len(plan.trait_sets) - 1 and any(not slot.is_granular for slot in plan.slots):
        return False
    if not plan.request.combines_nested:
        by_root = defaultdict(set)
        for provider in choice:
            by_root[tree.root_of.get(provider, tree.root)].add(provider)
        return all(len(found) == 1 for found in by_root.values())
    return True
