"""The places of providers, compared with walking up from each of them."""

from typing import NamedTuple

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tests.unit.candidates.searches import layout_of

LEVELS = 2


class Forest(NamedTuple):
    """Trees: the parent and the tree of each provider, and the levels whose place it is, as bits."""

    parents: dict[int, int | None]
    roots: dict[int, int]
    level_bits: dict[int, int]


@st.composite
def forests(draw) -> Forest:
    """Draw a few trees whose ids are in any order: a child may have a lower id than its parent."""
    ids = draw(st.permutations(range(1, draw(st.integers(1, 12)) + 1)))
    parents: dict[int, int | None] = {}
    for provider in ids:
        parents[provider] = draw(st.sampled_from([None, *parents]))
    roots = {provider: above(parents, provider)[-1] for provider in parents}
    level_bits = {provider: draw(st.integers(0, 2**LEVELS - 1)) for provider in parents}
    return Forest(parents, roots, {provider: mark for provider, mark in level_bits.items() if mark})


def above(parents: dict[int, int | None], provider: int | None) -> list[int]:
    """Return a provider and all its ancestors."""
    found = []
    while provider is not None:
        found.append(provider)
        provider = parents[provider]
    return found


def position(forest: Forest, provider: int) -> tuple[int | None, ...]:
    """Return for each level the nearest place at or above a provider."""
    upwards = above(forest.parents, provider)
    return tuple(
        next((place for place in upwards if forest.level_bits.get(place, 0) >> level & 1), None)
        for level in range(LEVELS)
    )


@examples(60)
@given(forests(), st.data())
def test_a_set_of_providers_touches_the_nearest_places_of_each(forest, data):
    places = layout_of(forest.parents, forest.level_bits, forest.parents, levels=LEVELS).places
    root = data.draw(st.sampled_from(sorted(set(forest.roots.values()))))
    tree = [provider for provider in forest.parents if forest.roots[provider] == root]
    chosen = data.draw(st.sets(st.sampled_from(tree)))
    touched = 0
    for provider in chosen:
        touched |= places.masks.get(provider, 0)
    positions = [position(forest, provider) for provider in chosen]
    assert places.counts(touched) == tuple(
        max(1, len({at[level] for at in positions} - {None})) for level in range(LEVELS)
    )


@examples(60)
@given(forests())
def test_the_position_of_a_provider_names_the_nearest_places(forest):
    layout = layout_of(forest.parents, forest.level_bits, forest.parents, levels=LEVELS)
    assert layout.positions == {provider: position(forest, provider) for provider in forest.parents}


@examples(60)
@given(forests(), st.data())
def test_what_fits_around_a_provider_is_the_sum_over_its_place_and_those_inside(forest, data):
    sums = data.draw(st.dictionaries(st.sampled_from(sorted(forest.parents)), st.integers(0, 9).map(float)))
    layout = layout_of(forest.parents, forest.level_bits, sums, levels=LEVELS)

    def around(provider):
        here = position(forest, provider)
        if here == (None,) * LEVELS:
            return sums[provider]
        same_tree = [other for other in sums if forest.roots[other] == forest.roots[provider]]
        return sum(sums[other] for other in same_tree if is_inside(position(forest, other), here))

    at = sorted(sums, key=lambda provider: (forest.roots[provider], provider))
    found = layout.around(np.array([sums[provider] for provider in at], dtype=float))
    assert found == {provider: around(provider) for provider in sums}


def is_inside(one: tuple[int | None, ...], other: tuple[int | None, ...]) -> bool:
    """Return whether everything in the places of one position is in those of another as well."""
    return all(there in (None, here) for here, there in zip(one, other, strict=True))


def test_many_places_one_inside_the_other_are_no_deeper_than_python_can_go():
    count = 3000
    parents = {provider: provider + 1 for provider in range(1, count)} | {count: None}
    places = layout_of(parents, dict.fromkeys(parents, 0b1), parents, levels=1).places
    assert places.masks[1].bit_count() == 1
    assert places.levels[0].bit_count() == count


def test_a_place_that_no_provider_lies_in_is_not_counted():
    """A node below a switch that is itself in a node: of the outer one nothing is nearest, whatever its id."""
    parents = {9: None, 2: 9, 3: 2, 4: 3}
    layout = layout_of(parents, {9: 1, 2: 2, 3: 1}, [4], levels=LEVELS)
    assert layout.around(np.array([2.0])) == {4: 2.0}
