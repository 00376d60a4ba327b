"""The strategy fit against the numbers of Volcano's ResourceStrategyFit: its documentation and its own tests.

Each row has the id of its vector (RS-nn). Where ours deliberately differs, the test says why and shows both numbers.
Every score is checked in the plain form, which is exact, and in the compiled form.
"""

from fractions import Fraction

import pytest

from placement.allocators.ranking_profile import NodeScorer, ScoredNode
from placement.allocators.strategy_fit import Fit, Preference, Profile, Sra
from tests.unit.allocators.strategy_fit_definitions import assess, best_first, can_serve

FOO, T4, A10 = "CUSTOM_FOO", "CUSTOM_NVIDIA_COM_T4", "CUSTOM_NVIDIA_COM_A10"


def most(weight=1):
    return Preference("MostAllocated", weight)


def least(weight=1):
    return Preference("LeastAllocated", weight)


def total(profile: Profile, requested: dict[str, int], node: ScoredNode) -> Fraction:
    """Return the score of a node, checking that the compiled form gives the same."""
    exact = assess(profile, requested, node).total
    scorer = NodeScorer(profile, requested)
    amounts = [tuple(side.get(name, 0) for name in scorer.classes) for side in (node.allocatable, node.used)]
    assert scorer.score(*amounts) == float(exact)
    return exact


def fit_total(fit: Fit, requested: dict[str, int], node: ScoredNode) -> Fraction:
    score = assess(Profile(fit=fit), requested, node).fit
    assert score == total(Profile(fit=fit), requested, node)
    return score


def fit(weight=10, **resources: Preference) -> Fit:
    return Fit(resources, weight=weight)


def cpu_and_memory(each: int, used: int = 200) -> ScoredNode:
    """Return a node with this much of each of the two classes."""
    return ScoredNode(dict.fromkeys(BOTH, each), dict.fromkeys(BOTH, used))


BOTH = {"VCPU": 100, "MEMORY_MB": 100}
LARGE, SMALL, FULL = cpu_and_memory(500), cpu_and_memory(400), cpu_and_memory(500, used=500)
MEMORY_ALONE = ScoredNode({"MEMORY_MB": 400}, {"MEMORY_MB": 200})
SPREAD, PACKED = fit(VCPU=least(), MEMORY_MB=least()), fit(VCPU=most(), MEMORY_MB=most())
MIXED = fit(VCPU=least(1), MEMORY_MB=most(2))

FITS = {
    "RS-01": (SPREAD, BOTH, LARGE, 400),
    "RS-02": (SPREAD, BOTH, SMALL, 250),
    "RS-03": (PACKED, BOTH, LARGE, 600),
    "RS-04": (PACKED, BOTH, SMALL, 750),
    "RS-05": (fit(VCPU=least(2), MEMORY_MB=most(1)), BOTH, LARGE, Fraction(1400, 3)),
    "RS-06": (MIXED, BOTH, LARGE, Fraction(1600, 3)),
    "RS-07-a-request-of-0-asks-for-nothing": (MIXED, {"VCPU": 0, "MEMORY_MB": 100}, LARGE, 600),
    "RS-08-a-missing-class-keeps-its-weight": (MIXED, BOTH, MEMORY_ALONE, 500),
    "RS-09": (fit(MEMORY_MB=most(2)), BOTH, LARGE, 600),
    "RS-10": (fit(VCPU=least(3), MEMORY_MB=most(1)), BOTH, LARGE, 450),
    "RS-11": (fit(20, VCPU=least(5), MEMORY_MB=least(5)), BOTH, LARGE, 800),
    "RS-12-what-does-not-suffice-makes-the-whole-0": (SPREAD, BOTH, FULL, 0),
    "what-is-exactly-enough-is-full-and-not-too-little": (fit(VCPU=most()), BOTH, cpu_and_memory(300), 1000),
    "RS-13-least": (fit(VCPU=least(2), MEMORY_MB=least(1)), BOTH, LARGE, 400),
    "RS-13-most": (fit(VCPU=most(1), MEMORY_MB=most(2)), BOTH, LARGE, 600),
    "RS-13-one-class": (fit(VCPU=least(2)), BOTH, LARGE, 400),
    "nothing-configured-is-asked-for": (fit(PGPU=most()), BOTH, LARGE, 0),
    "nothing-is-asked-for": (fit(VCPU=least()), {}, LARGE, 0),
    "switched-off": (fit(0, VCPU=least()), BOTH, LARGE, 0),
    "a-weight-of-0-leaves-a-class-out": (Fit({"VCPU": least(), "MEMORY_*": most(0)}), BOTH, LARGE, 400),
}


@pytest.mark.parametrize(("policy", "requested", "node", "expected"), FITS.values(), ids=FITS)
def test_fit_over_two_classes(policy: Fit, requested: dict[str, int], node: ScoredNode, expected: Fraction) -> None:
    assert fit_total(policy, requested, node) == expected


def test_RS_14_an_override_cannot_be_broken() -> None:  # noqa: N802
    """Volcano parses weights from an annotation of the pod and scores 0 if they are invalid.

    Ours differs: a request can only select a profile of the operator, which has been validated.
    """
    with pytest.raises(ValueError, match="resources: expected a mapping of at least one resource class"):
        Fit({})


@pytest.mark.parametrize(
    ("requested", "expected"),
    [
        pytest.param({FOO: 2}, [0, 0, 800, 600], id="RS-15-foo-2"),
        pytest.param({FOO: 3}, [0, 0, 700, 400], id="RS-15-foo-3"),
        pytest.param({"PGPU": 2}, [200, 400, 0, 0], id="RS-15-gpu-2"),
        pytest.param({"PGPU": 3}, [300, 600, 0, 0], id="RS-15-gpu-3"),
    ],
)
def test_one_class_is_packed_and_another_spread(requested: dict[str, int], expected: list[int]) -> None:
    policy = Fit({"PGPU": most(), FOO: least()})
    nodes = [ScoredNode({"PGPU": 10}), ScoredNode({"PGPU": 5}), ScoredNode({FOO: 10}), ScoredNode({FOO: 5})]
    assert [fit_total(policy, requested, node) for node in nodes] == expected


def test_RS_16_a_node_that_cannot_serve_the_request_is_not_offered() -> None:  # noqa: N802
    """By the formula a node without GPUs gets 400 and beats the one that can run the request, with 266.67.

    Ours differs: the scores are Volcano's, but nodes that cannot serve the request are excluded before scoring.
    """
    policy, requested = Fit({"PGPU": most(1), FOO: least(2)}), {"PGPU": 4, FOO: 4}
    able, unable = ScoredNode({"PGPU": 10, FOO: 5}), ScoredNode({FOO: 10})
    assert (fit_total(policy, requested, able), fit_total(policy, requested, unable)) == (Fraction(800, 3), 400)
    assert best_first(Profile(fit=policy), requested, {"able": able, "unable": unable}) == ["able"]


SEED_FIT = Fit({"PGPU": most(2), "VCPU": least(1)})


@pytest.mark.parametrize(
    ("requested", "used", "expected"),
    [
        pytest.param({"VCPU": 2, "PGPU": 2}, {"VCPU": 4, "PGPU": 2}, Fraction(1625, 3), id="RS-17"),
        pytest.param({"VCPU": 2}, {"VCPU": 4}, 625, id="RS-18"),
        pytest.param({"PGPU": 1}, {}, 125, id="RS-19"),
        pytest.param({"VCPU": 13}, {"VCPU": 4}, 0, id="RS-20"),
    ],
)
def test_the_first_configuration_of_the_documentation(requested, used, expected) -> None:
    assert fit_total(SEED_FIT, requested, ScoredNode({"VCPU": 16, "PGPU": 8}, used)) == expected


BEST_PRACTICE = Profile(fit=SEED_FIT, sra=Sra({"PGPU": 1}, weight=10))
UPSTREAM_BEST_PRACTICE = Profile(fit=SEED_FIT, sra=Sra({"PGPU": 1}, weight=10, mode="upstream"))
MIXED_CLUSTER = {
    "cpu": ScoredNode({"VCPU": 32}),
    "gpu": ScoredNode({"VCPU": 16, "PGPU": 8}),
    "half": ScoredNode({"VCPU": 16, "PGPU": 8}, {"VCPU": 8, "PGPU": 4}),
}


@pytest.mark.parametrize("profile", [BEST_PRACTICE, UPSTREAM_BEST_PRACTICE], ids=["unneeded", "upstream"])
def test_RS_21_a_cpu_job_stays_off_the_nodes_with_gpus(profile: Profile) -> None:  # noqa: N802
    assert [total(profile, {"VCPU": 4}, node) for node in MIXED_CLUSTER.values()] == [1875, 750, 250]
    assert best_first(profile, {"VCPU": 4}, MIXED_CLUSTER) == ["cpu", "gpu", "half"]


GPU_JOB = {"VCPU": 4, "PGPU": 2}


def test_RS_22_a_gpu_job_goes_to_the_fuller_gpu_node() -> None:  # noqa: N802
    """The formula gives 291.67 to the node without GPUs, which cannot run the job. Ours differs: it is excluded."""
    scores = [float(total(UPSTREAM_BEST_PRACTICE, GPU_JOB, node)) for node in MIXED_CLUSTER.values()]
    assert scores == [pytest.approx(expected, abs=0.005) for expected in (291.67, 416.67, 583.33)]
    assert best_first(UPSTREAM_BEST_PRACTICE, GPU_JOB, MIXED_CLUSTER) == ["half", "gpu"]


def test_RS_22_nodes_with_what_is_needed_are_not_ranked_down_for_it() -> None:  # noqa: N802
    """Ours differs: the requested GPUs cost the GPU nodes nothing, so both get the whole 1000 of sra."""
    scores = [float(total(BEST_PRACTICE, GPU_JOB, MIXED_CLUSTER[name])) for name in ("gpu", "half")]
    assert scores == [pytest.approx(1416.67, abs=0.005), pytest.approx(1583.33, abs=0.005)]


SEED_NODES = [
    ScoredNode({"VCPU": 32, "MEMORY_MB": 65536}),
    ScoredNode({"VCPU": 16, "MEMORY_MB": 32768, T4: 10}),
    ScoredNode({"VCPU": 16, "MEMORY_MB": 32768, T4: 5, A10: 10}),
]
PLAIN_TASK = {"VCPU": 2, "MEMORY_MB": 4096}
SEED_TASKS = {
    "cpu-task-0": PLAIN_TASK,
    "gpu-task-0": {**PLAIN_TASK, T4: 2},
    "gpu-task-1": {**PLAIN_TASK, T4: 1, A10: 2},
}


def sra_totals(policy: Sra, requested: dict[str, int], nodes: list[ScoredNode]) -> list[Fraction | None]:
    """Return the score of each node that can serve the request, or of all in a mode that gives the others 0."""
    scores = [assess(Profile(sra=policy), requested, node).sra for node in nodes]
    assert scores == [total(Profile(sra=policy), requested, node) for node in nodes]
    if policy.mode == "upstream":
        return list(scores)
    return [score if can_serve(requested, node) else None for score, node in zip(scores, nodes, strict=True)]


@pytest.mark.parametrize(
    ("task", "upstream", "ours"),
    [
        pytest.param("cpu-task-0", [200, 100, 0], [200, 100, 0], id="RS-25"),
        pytest.param("gpu-task-0", [0, 100, 0], [None, 200, 100], id="RS-26"),
        pytest.param("gpu-task-1", [0, 0, 0], [None, None, 200], id="RS-27"),
    ],
)
def test_sra_gives_the_table_of_the_documentation_or_ours(task: str, upstream: list, ours: list) -> None:
    """By the documentation, requests that do not need a scarce resource avoid it; the formula ignores the request.

    So a task that needs both kinds of GPU gets 0 everywhere, both on the node that has them and on those that cannot
    run it. Ours differs: requested resources do not count against a node. Nodes that cannot serve the request have no
    score.
    """
    resources = {"nvidia.com/t4": 1, "nvidia.com/a10": 1}
    assert sra_totals(Sra(resources, weight=2, mode="upstream"), SEED_TASKS[task], SEED_NODES) == upstream
    assert sra_totals(Sra(resources, weight=2), SEED_TASKS[task], SEED_NODES) == ours


FOUR_NODES = [
    ScoredNode({"VCPU": 8}),
    ScoredNode({"VCPU": 8, T4: 8}),
    ScoredNode({"VCPU": 8, A10: 8}),
    ScoredNode({"VCPU": 8, T4: 8, A10: 8}),
]
FOUR_TASKS = [{"VCPU": 1}, {"VCPU": 1, T4: 1}, {"VCPU": 1, A10: 1}, {"VCPU": 1, T4: 1, A10: 1}]


@pytest.mark.parametrize(
    ("resources", "upstream", "ours"),
    [
        pytest.param(
            {T4: 2, A10: 3},
            [[500, 300, 200, 0], [0, 300, 0, 0], [0, 0, 200, 0], [0, 0, 0, 0]],
            [[500, 300, 200, 0], [None, 500, None, 200], [None, None, 500, 300], [None, None, None, 500]],
            id="RS-28",
        ),
        pytest.param(
            {T4: 2},
            [[500, 0, 500, 0], [0, 0, 0, 0], [0, 0, 500, 0], [0, 0, 0, 0]],
            [[500, 0, 500, 0], [None, 500, None, 500], [None, None, 500, 0], [None, None, None, 500]],
            id="RS-29",
        ),
    ],
)
def test_sra_over_four_nodes(resources: dict[str, int], upstream: list, ours: list) -> None:
    """Ours differs: in RS-29 the task that needs a T4 gets 0 everywhere upstream, so it has no preference."""
    theirs, policy = Sra(resources, weight=5, mode="upstream"), Sra(resources, weight=5)
    assert [sra_totals(theirs, task, FOUR_NODES) for task in FOUR_TASKS] == upstream
    assert [sra_totals(policy, task, FOUR_NODES) for task in FOUR_TASKS] == ours


# Thousandths of a core.
MILLI_NODES = [
    ScoredNode({"VCPU": 32000}),
    ScoredNode({"VCPU": 8000, T4: 16}),
    ScoredNode({"VCPU": 8000, A10: 8}),
    ScoredNode({"VCPU": 8000, T4: 8, A10: 8}),
]
MILLI_TASKS = [{"VCPU": 1000}, {"VCPU": 1500, T4: 2}, {"VCPU": 2000, A10: 1}, {"VCPU": 3000, T4: 1, A10: 1}]
FIT_OF_RS_30 = Fit({T4: most(3), "VCPU": least(1)}, weight=8)


@pytest.mark.parametrize(
    ("profile", "expected"),
    [
        pytest.param(
            Profile(fit=FIT_OF_RS_30),
            [[775, 700, 700, 700], [190.625, 237.5, 162.5, 312.5], [750, 600, 600, 600], [181.25, 162.5, 125, 200]],
            id="RS-30",
        ),
        pytest.param(
            Profile(fit=FIT_OF_RS_30, sra=Sra({T4: 2}, weight=5, mode="upstream")),
            [[1275, 700, 1200, 700], [190.625, 237.5, 162.5, 312.5], [750, 600, 1100, 600], [181.25, 162.5, 125, 200]],
            id="RS-31",
        ),
    ],
)
def test_fit_and_sra_add_up(profile: Profile, expected: list[list[float]]) -> None:
    assert [[total(profile, task, node) for node in MILLI_NODES] for task in MILLI_TASKS] == expected


def test_RS_31_in_our_mode_the_needed_t4_costs_nothing() -> None:  # noqa: N802
    """Ours differs from RS-31: the second and fourth task need a T4, so nodes that have it keep all 500 of sra."""
    profile = Profile(fit=FIT_OF_RS_30, sra=Sra({T4: 2}, weight=5))
    able = [[node for node in MILLI_NODES if can_serve(task, node)] for task in MILLI_TASKS]
    assert [[total(profile, task, node) for node in nodes] for task, nodes in zip(MILLI_TASKS, able, strict=True)] == [
        [1275, 700, 1200, 700],
        [737.5, 812.5],
        [1100, 600],
        [700],
    ]


def test_scarce_resources_of_no_weight_give_no_score() -> None:
    assert total(Profile(sra=Sra({"PGPU": 0}, weight=1)), {"VCPU": 1}, ScoredNode({"VCPU": 8})) == 0


def test_the_parts_of_an_assessment_are_on_their_own_scales() -> None:
    verdict = assess(BEST_PRACTICE, {"VCPU": 4}, MIXED_CLUSTER["cpu"])
    assert (verdict.fit, verdict.sra, verdict.total, verdict.maximum) == (875, 1000, 1875, 2000)
    assert verdict.normalised == Fraction(375, 4)


def test_a_profile_without_scores_says_0_of_0() -> None:
    verdict = assess(Profile(), {"VCPU": 4}, ScoredNode({"VCPU": 8}))
    assert (verdict.total, verdict.maximum, verdict.normalised, verdict.keeps_proportion) == (0, 0, 0, True)
    scorer = NodeScorer(Profile(), {"VCPU": 4})
    assert (scorer.classes, scorer.score((), ())) == ((), 0.0)


def test_a_negative_request_is_refused() -> None:
    with pytest.raises(ValueError, match="VCPU: a request cannot be negative, but is -1"):
        NodeScorer(Profile(), {"VCPU": -1})
