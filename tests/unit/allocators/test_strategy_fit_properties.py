"""Properties of the strategy fit for any profile, request and node."""

from fractions import Fraction

from hypothesis import assume, given
from hypothesis import strategies as st

from placement.allocators.ranking_profile import NodeScorer, OwnPart, ScoredNode
from placement.allocators.strategy_fit import Fit, Preference, Profile, Proportional, Sra
from tests.unit.allocators.strategy_fit_definitions import assess, best_first, can_serve

CLASSES = ["VCPU", "MEMORY_MB", "PGPU", "CUSTOM_GPU_A", "CUSTOM_GPU_B", "CUSTOM_NIC"]
FAMILIES = ["CUSTOM_GPU_*", "CUSTOM_*", "P*"]
SECONDARIES = ["VCPU", "MEMORY_MB"]

names = st.sampled_from(CLASSES)
entries = st.sampled_from(CLASSES + FAMILIES)
numbers = st.sampled_from([0, 1, 2, 3, 5, 0.1, 0.3, 2.5, Fraction(1, 3), Fraction(10, 7)])
preferences = st.builds(Preference, st.sampled_from(["MostAllocated", "LeastAllocated"]), numbers)

fits = st.builds(Fit, st.dictionaries(entries, preferences, min_size=1, max_size=4), numbers)
sras = st.builds(
    Sra, st.dictionaries(entries, numbers, min_size=1, max_size=4), numbers, st.sampled_from(["unneeded", "upstream"])
)
ratios = st.dictionaries(st.sampled_from(SECONDARIES), numbers, min_size=1)
reserves = st.dictionaries(st.sampled_from(["PGPU", "CUSTOM_GPU_A", *FAMILIES]), ratios, min_size=1, max_size=3)
proportionals = st.builds(Proportional, reserves, st.sampled_from(["all", "own"]), st.sampled_from(["last", "filter"]))
maybe = st.none()
profiles = st.builds(Profile, fit=fits | maybe, sra=sras | maybe, proportional=proportionals | maybe)

requests = st.dictionaries(names, st.integers(0, 4))
capacities = st.dictionaries(names, st.integers(0, 10))
nodes = st.builds(ScoredNode, capacities, st.dictionaries(names, st.integers(0, 8)))


def in_order(scorer, node: ScoredNode) -> tuple[list[int], list[int]]:
    return [node.allocatable.get(name, 0) for name in scorer.classes], [
        node.used.get(name, 0) for name in scorer.classes
    ]


@st.composite
def parts(draw) -> tuple[dict[str, int], dict[str, int]]:
    """Draw a request and the part of it that the node itself provides."""
    requested = draw(requests)
    return requested, {name: draw(st.integers(0, amount)) for name, amount in requested.items() if draw(st.booleans())}


@given(profiles, parts(), nodes, st.booleans())
def test_the_compiled_form_equals_the_definitions(profile, part, node, is_alone) -> None:
    """To the last bit: equally good nodes stay equal, and neither form can order them differently."""
    requested, own = part
    scorer = NodeScorer(profile, requested, node.allocatable, own=None if is_alone else OwnPart.exactly(own))
    verdict = assess(profile, requested, node, None if is_alone else own)
    assert scorer.score(*in_order(scorer, node)) == float(verdict.total)
    assert scorer.keeps_proportion(*in_order(scorer, node)) == verdict.keeps_proportion


@given(profiles, parts(), nodes)
def test_no_part_of_a_request_is_better_than_the_bound_on_all_parts(profile, part, node) -> None:
    requested, own = part
    least = {name: min(own.get(name) or amount, amount) for name, amount in requested.items() if amount}
    bound = NodeScorer(profile, requested, node.allocatable, own=OwnPart(limit=requested, least=least))
    verdict = assess(profile, requested, node, own)
    assert bound.score(*in_order(bound, node)) >= float(verdict.total)
    assert bound.keeps_proportion(*in_order(bound, node)) >= verdict.keeps_proportion


@given(profiles, requests, nodes)
def test_who_gives_everything_is_judged_as_if_there_were_nobody_else(profile, requested, node) -> None:
    assume(can_serve(requested, node))
    assert assess(profile, requested, node, requested) == assess(profile, requested, node)


@given(profiles, requests, st.dictionaries(st.sampled_from(["n1", "n2", "n10", "n01", "m"]), nodes))
def test_the_order_of_nodes_comes_from_their_scores_and_names_alone(profile, requested, cluster) -> None:
    order = best_first(profile, requested, cluster)
    assert order == best_first(profile, requested, dict(reversed(cluster.items())))
    assert all(can_serve(requested, cluster[name]) for name in order)
    verdicts = [assess(profile, requested, cluster[name]) for name in order]
    ranks = [(verdict.keeps_proportion, verdict.total) for verdict in verdicts]
    assert ranks == sorted(ranks, reverse=True)
