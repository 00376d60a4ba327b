"""The Group Allocator compared with brute force: it misses nothing, and nothing is better than what it finds."""

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from placement.allocators import natural_key
from placement.allocators.group.locations import Locations, Rules
from placement.allocators.group.place import place
from placement.allocators.group.requirements import Requirements
from placement.allocators.group.tree import (
    ANYWHERE,
    Capacity,
    Location,
    Phase,
    Requirement,
    Scorer,
    Used,
    Verdict,
    scorer_by_name,
)
from tests.examples import examples
from tests.unit.allocators.group_instances import Everything, choice_of
from tests.unit.allocators.group_random import instances, random_instance

pytestmark = pytest.mark.exhaustive

MAX_CHOICES = 400
BASES = ["cards", "memory", "enumKind", "cpu", "ram", "vf"]


def check(root, requirements, **rules) -> None:
    """Place requirements and compare, unless there are too many ways to try."""
    everything = Everything(root, requirements, **rules)
    assume(everything.count(MAX_CHOICES) < MAX_CHOICES)
    compare(everything, place(root, requirements, Rules(**rules)))


def compare(everything, placement) -> None:
    best = everything.best()
    assert placement.complete
    assert placement.feasible == (best is not None)
    if best is not None:
        assert placement.objective.rank == best
        choice = choice_of(placement)
        assert everything.worth(choice) == best
        assert everything.taken(choice) == placement.taken


@examples(300)
@given(instances)
@example(random_instance(2429))  # two devices that must be taken are in one group
def test_the_best_of_all_placements_is_found(instance):
    check(instance.root, instance.requirements, distinct=instance.distinct, levels=instance.levels)


def test_a_requirement_that_went_elsewhere_takes_nothing_from_where_it_could_have_gone():
    """The bounds once counted a device as taken although its requirement had another one, and missed the best."""
    small = {"cards": Capacity(1), "memory": Capacity(4), "enumKind": Capacity(0)}
    big = {"cards": Capacity(2), "memory": Capacity(4)}
    inside = (Location("d0", "gpu", small), Location("d1", "gpu", big))
    root = Location(children=(Location("g0", "grp"), Location("g1", "grp", {}, inside)))
    first = Requirement("", "gpu", {"cards": 0, "enumKind": 0})
    second = Requirement("", "gpu", {"cards": 1, "memory": 1})
    third = Requirement("", "gpu", {"cards": 1})
    requirements = [Requirement(parts=(Requirement("", "grp"), Requirement("", "grp", {}, (first, second)), third))]
    compare(Everything(root, requirements), place(root, requirements))


@examples(100)
@given(instances, st.data())
def test_parts_that_may_be_anywhere_or_only_somewhere_get_the_best_of_all_placements(instance, data):
    requirement = instance.requirements[0]
    places = [location.path for location in Locations(instance.root, scorer_by_name).all]

    def varied(part: Requirement) -> Requirement:
        level = data.draw(st.sampled_from([part.level, ANYWHERE]))
        return replace(part, level=level, only=data.draw(st.none() | st.frozensets(st.sampled_from(places))))

    parts = tuple(map(varied, requirement.parts))
    check(instance.root, [replace(requirement, parts=parts)], distinct=instance.distinct)


def any_scorer(table: list[int], *, salt: int) -> Scorer:
    """Return a scorer with arbitrary scores that promises nothing."""

    def drawn(*what) -> int:
        return table[hash((*what, salt)) % len(table)]

    def judge(allocatable, used, requested, phase):
        running = phase is Phase.RUNNING
        weight = sum(drawn(allocatable, *used, amount, running) for amount in requested)
        score = Fraction(drawn(allocatable, *used, *sorted(requested), running), 10)
        after = Used(used.total + sum(requested), used.own + weight)
        return Verdict(weight <= 5 + drawn(allocatable), score, after)

    return Scorer(judge)


@examples(105)
@given(instances, st.lists(st.integers(0, 9), min_size=3, max_size=30))
def test_scorers_that_promise_nothing_are_served_as_exactly(instance, table):
    """They may refuse small amounts at any usage, and raise and lower the score arbitrarily."""
    root, requirements, distinct, levels = instance
    scorers = {base: any_scorer(table, salt=salt) for salt, base in enumerate(BASES)}
    # With such scorers, the result for several containers depends on the order in which they are placed.
    check(root, requirements[:1], distinct=distinct, levels=levels, scorer_for=scorers.__getitem__)


def leave_free(allocatable, used, requested, phase):
    total = used.total + sum(requested)
    share = Fraction(max(0, allocatable - total), allocatable) if allocatable else Fraction(0)
    return Verdict(total <= allocatable, share, Used(total, used.own))


@examples(45)
@given(instances)
def test_a_scorer_may_prefer_what_is_least_used(instance):
    """Its scores fall as more is used; the bounds of the search hold for that as well."""
    scorer = Scorer(leave_free, adds_up=True, diminishing=True)
    running = replace(instance.requirements[0], phase=Phase.RUNNING)
    check(instance.root, [running], distinct=instance.distinct, scorer_for=lambda _base: scorer)


def in_order_of_search(root, requirements, *, distinct) -> list[tuple[int, ...]]:
    """Return the requirements in the order in which they are placed: the hardest first, parts after wholes."""
    built = Requirements(Locations(root, scorer_by_name), requirements, distinct=distinct)
    keys = {}

    def name(node, key) -> None:
        keys[node.index] = key
        for number, part in enumerate(node.parts_as_given):
            name(part, (*key, number))

    for number, node in enumerate(built.containers):
        name(node, (number,))
    return [keys[node.index] for node in built.in_order]


@examples(125)
@given(instances)
def test_of_the_best_placements_the_first_in_natural_order_is_taken(instance):
    """Each requirement in turn has the first location in natural order that leads to an equally good placement."""
    root, requirements, distinct, levels = instance
    everything = Everything(root, requirements, distinct=distinct, levels=levels)
    assume(everything.count(MAX_CHOICES) < MAX_CHOICES)
    worths = [(everything.worth(choice), choice) for choice in everything.choices()]
    best = max([worth for worth, _choice in worths if worth is not None], default=None)
    assume(best is not None)
    order = in_order_of_search(root, requirements, distinct=distinct)

    def places(choice):
        return [[(natural_key(level), natural_key(name)) for level, name in choice[key]] for key in order]

    found = choice_of(place(root, requirements, Rules(distinct=distinct, levels=levels)))
    assert places(found) == min(places(choice) for worth, choice in worths if worth == best)
