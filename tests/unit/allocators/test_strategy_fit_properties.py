"""Properties of the strategy fit for any profile, request and node."""

import random
from fractions import Fraction

from hypothesis import assume, given
from hypothesis import strategies as st

from placement.allocators.strategy_fit import (
    Fit,
    OwnPart,
    Preference,
    Profile,
    Proportional,
    ScoredNode,
    Scorers,
    Sra,
    assess,
    best_first,
    can_serve,
    fit_score,
    keeps_proportion,
    scorer_for,
    sra_score,
)
from tests.unit.allocators import strategy_fit_definitions as definitions

CLASSES = ["VCPU", "MEMORY_MB", "PGPU", "CUSTOM_GPU_A", "CUSTOM_GPU_B", "CUSTOM_NIC"]
FAMILIES = ["CUSTOM_GPU_*", "CUSTOM_*", "P*"]
SECONDARIES = ["VCPU", "MEMORY_MB"]

names = st.sampled_from(CLASSES)
entries = st.sampled_from(CLASSES + FAMILIES)
numbers = st.sampled_from([0, 1, 2, 3, 5, 0.1, 0.3, 2.5, Fraction(1, 3), Fraction(10, 7)])
positive = st.sampled_from([1, 2, 5, 0.1, 2.5, Fraction(1, 3)])
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
    scorer = scorer_for(profile, requested, node.allocatable, None if is_alone else OwnPart.exactly(own))
    verdict = assess(profile, requested, node, None if is_alone else own)
    given = requested if is_alone else own
    fit = definitions.fit_score(profile.fit, requested, node, None if is_alone else own) if profile.fit else 0
    sra = definitions.sra_score(profile.sra, given, node) if profile.sra else 0
    policy = profile.proportional
    assert (verdict.fit, verdict.sra) == (fit, sra)
    assert verdict.keeps_proportion == (policy is None or definitions.keeps_proportion(policy, given, node))
    assert scorer.score(*in_order(scorer, node)) == float(fit + sra)
    assert scorer.normalised(*in_order(scorer, node)) == float(verdict.normalised)
    assert scorer.keeps_proportion(*in_order(scorer, node)) == verdict.keeps_proportion
    assert scorer.maximum == float(verdict.maximum)


@given(profiles, st.lists(st.tuples(parts(), nodes), min_size=2, max_size=4))
def test_scorers_compiled_before_are_those_of_the_request(profile, scored) -> None:
    """Also where requests ask for the same, and nodes give different parts of it or have other classes."""
    scorers = Scorers(profile)
    for (requested, own), node in [*scored, *[((scored[0][0][0], own), node) for (_, own), node in scored], *scored]:
        asked = requested, frozenset(node.allocatable), OwnPart.exactly(own)
        kept, compiled = scorers.of(*asked), scorer_for(profile, *asked)
        assert kept is scorers.of(*asked)
        assert kept.classes == compiled.classes
        assert kept.score(*in_order(kept, node)) == compiled.score(*in_order(compiled, node))
        assert kept.keeps_proportion(*in_order(kept, node)) == compiled.keeps_proportion(*in_order(compiled, node))


@given(profiles, parts(), nodes)
def test_no_part_of_a_request_is_better_than_the_bound_on_all_parts(profile, part, node) -> None:
    requested, own = part
    least = {name: min(own.get(name) or amount, amount) for name, amount in requested.items() if amount}
    bound = scorer_for(profile, requested, node.allocatable, OwnPart(most=requested, least=least))
    verdict = assess(profile, requested, node, own)
    assert bound.score(*in_order(bound, node)) >= float(verdict.total)
    assert bound.keeps_proportion(*in_order(bound, node)) >= verdict.keeps_proportion


@given(fits, parts(), nodes)
def test_what_others_give_is_as_if_the_node_had_none_of_it(fit, part, node) -> None:
    requested, own = part
    given_here = [name for name in requested if 0 < own.get(name, 0) <= node.idle(name)]
    without = ScoredNode({name: node.allocatable.get(name, 0) for name in given_here}, node.used)
    asked = {name: own[name] if name in given_here else amount for name, amount in requested.items()}
    assert fit_score(fit, requested, node, own) == fit_score(fit, asked, without)


@given(profiles, requests, nodes)
def test_who_gives_everything_is_judged_as_if_there_were_nobody_else(profile, requested, node) -> None:
    assume(can_serve(requested, node))
    assert assess(profile, requested, node, requested) == assess(profile, requested, node)


def test_equally_good_nodes_get_the_same_float() -> None:
    """Added as floats, .1 + .2 + .3 is more than .3 + .2 + .1."""
    requested = {"VCPU": 1, "MEMORY_MB": 1, "DISK_GB": 1}
    scorer = scorer_for(Profile(fit=Fit(dict.fromkeys(requested, Preference("MostAllocated")))), requested)
    assert 0.1 + 0.2 + 0.3 != 0.3 + 0.2 + 0.1
    assert scorer.score((10, 10, 10), (0, 1, 2)) == scorer.score((10, 10, 10), (2, 1, 0)) == 200


@given(profiles, requests, nodes)
def test_scores_stay_on_their_scales(profile, requested, node) -> None:
    verdict = assess(profile, requested, node)
    assert 0 <= verdict.total <= verdict.maximum
    assert 0 <= verdict.normalised <= 100
    assert profile.fit is None or 0 <= verdict.fit <= 100 * Fraction(str(profile.fit.weight))


@given(fits, requests, nodes, names)
def test_more_in_use_is_better_for_who_packs_and_worse_for_who_spreads(fit, requested, node, name) -> None:
    fuller = ScoredNode(node.allocatable, {**node.used, name: node.used.get(name, 0) + 1})
    assume(can_serve(requested, fuller))
    change = fit_score(fit, requested, fuller) - fit_score(fit, requested, node)
    types = {preference.type for preference in fit.resources.values()}
    if types == {"MostAllocated"}:
        assert change >= 0
    elif types == {"LeastAllocated"}:
        assert change <= 0


@given(sras, requests, nodes, names)
def test_another_scarce_resource_never_makes_a_node_better(sra, requested, node, name) -> None:
    assume(sra.mode == "unneeded" or name not in requested)
    richer = ScoredNode({**node.allocatable, name: node.allocatable.get(name, 0) + 1}, node.used)
    assert sra_score(sra, requested, richer) <= sra_score(sra, requested, node)


@given(sras, requests, nodes)
def test_what_is_asked_for_only_ever_helps_against_the_upstream_formula(sra, requested, node) -> None:
    unneeded, upstream = (Sra(sra.resources, sra.weight, mode) for mode in ("unneeded", "upstream"))
    assert sra_score(unneeded, requested, node) >= sra_score(upstream, requested, node)


@given(proportionals, requests, nodes, st.sampled_from(SECONDARIES), st.integers(1, 5))
def test_a_request_that_takes_less_keeps_the_proportion_too(policy, requested, node, name, less) -> None:
    smaller = {**requested, name: max(0, requested.get(name, 0) - less)}
    assume(keeps_proportion(policy, requested, node))
    # In mode "all" a request for any primary is exempt, also if a family makes the secondary a primary.
    assert keeps_proportion(policy, smaller, node)


@given(proportionals, requests, nodes, st.sampled_from(SECONDARIES))
def test_a_node_with_more_of_a_secondary_keeps_the_proportion_too(policy, requested, node, name) -> None:
    assume(keeps_proportion(policy, requested, node))
    richer = ScoredNode({**node.allocatable, name: node.allocatable.get(name, 0) + 1}, node.used)
    assert keeps_proportion(policy, requested, richer)


@given(reserves, requests, nodes)
def test_to_be_exempt_from_all_is_never_stricter(reserve, requested, node) -> None:
    assume(keeps_proportion(Proportional(reserve, "own"), requested, node))
    assert keeps_proportion(Proportional(reserve, "all"), requested, node)


@given(profiles, requests, nodes, names, st.integers(2, 1000))
def test_the_unit_of_a_class_does_not_matter_to_scores(profile, requested, node, name, factor) -> None:
    def scaled(amounts):
        return {each: amount * factor if each == name else amount for each, amount in amounts.items()}

    before, after = (
        assess(profile, requested, node),
        assess(profile, scaled(requested), ScoredNode(*map(scaled, (node.allocatable, node.used)))),
    )
    assert (after.fit, after.sra, after.can_serve) == (before.fit, before.sra, before.can_serve)


@given(fits, sras, requests, nodes, positive)
def test_weights_count_in_proportion(fit, sra, requested, node, factor) -> None:
    """Ten times every resource weight changes nothing; ten times a policy's weight gives ten times its score."""

    def times(weight):
        return Fraction(str(weight)) * Fraction(str(factor))

    heavier = Fit({name: Preference(each.type, times(each.weight)) for name, each in fit.resources.items()}, fit.weight)
    assert fit_score(heavier, requested, node) == fit_score(fit, requested, node)
    scarcer = Sra({name: times(weight) for name, weight in sra.resources.items()}, times(sra.weight), sra.mode)
    assert sra_score(scarcer, requested, node) == times(1) * sra_score(sra, requested, node)


@given(profiles, requests, nodes, st.permutations(["A", "B", "C", "D", "E", "F"]), st.randoms(use_true_random=False))
def test_names_and_their_order_do_not_matter(profile, requested, node, letters, shuffle) -> None:
    """Renaming the classes and reordering everything gives the very same numbers."""
    new_name = dict(zip(CLASSES, [f"CUSTOM_{letter}" for letter in letters], strict=True))
    plain = without_families(profile)
    renamed = rename(plain, new_name, shuffle)
    other = [rename_keys(amounts, new_name, shuffle) for amounts in (requested, *node)]
    before, after = assess(plain, requested, node), assess(renamed, other[0], ScoredNode(*other[1:]))
    assert before == after
    one, two = scorer_for(plain, requested), scorer_for(renamed, other[0])
    assert one.score(*in_order(one, node)) == two.score(*in_order(two, ScoredNode(*other[1:])))


def rename_keys(entries, new_name, shuffle: random.Random):
    items = [(new_name[name], value) for name, value in entries.items()]
    shuffle.shuffle(items)
    return dict(items)


def without_families(profile: Profile) -> Profile:
    """Return the profile with exact names only: family names have a meaning."""
    return Profile(
        fit=profile.fit and Fit(exact_only(profile.fit.resources) or {"VCPU": Preference("MostAllocated")}),
        sra=profile.sra and Sra(exact_only(profile.sra.resources) or {"PGPU": 1}, profile.sra.weight, profile.sra.mode),
        proportional=profile.proportional
        and Proportional(
            exact_only(profile.proportional.reserve) or {"PGPU": {"VCPU": 1}}, profile.proportional.exempt
        ),
    )


def exact_only(entries):
    return {name: value for name, value in entries.items() if not name.endswith("*")}


def rename(profile: Profile, new_name, shuffle) -> Profile:
    def keys(entries):
        return rename_keys(entries, new_name, shuffle)

    kept = profile.proportional
    return Profile(
        fit=profile.fit and Fit(keys(profile.fit.resources), profile.fit.weight),
        sra=profile.sra and Sra(keys(profile.sra.resources), profile.sra.weight, profile.sra.mode),
        proportional=kept
        and Proportional(keys({name: keys(kept.reserve[name]) for name in kept.reserve}), kept.exempt),
    )


@given(profiles, requests, st.dictionaries(st.sampled_from(["n1", "n2", "n10", "n01", "m"]), nodes))
def test_the_order_of_nodes_comes_from_their_scores_and_names_alone(profile, requested, cluster) -> None:
    order = best_first(profile, requested, cluster)
    assert order == best_first(profile, requested, dict(reversed(cluster.items())))
    assert all(can_serve(requested, cluster[name]) for name in order)
    verdicts = [assess(profile, requested, cluster[name]) for name in order]
    ranks = [(verdict.keeps_proportion, verdict.total) for verdict in verdicts]
    assert ranks == sorted(ranks, reverse=True)
