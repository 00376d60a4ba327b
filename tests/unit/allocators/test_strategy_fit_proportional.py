"""The reserve for scarce resources against the numbers of Volcano's ResourceStrategyFit (RS-32 to RS-39), and ours.

Every verdict is checked in the plain and in the compiled form.
"""

import pytest

from placement.allocators.ranking_profile import NodeScorer, ScoredNode
from placement.allocators.strategy_fit import Fit, Profile, Proportional
from tests.unit.allocators.strategy_fit_definitions import assess, best_first


def holds(policy: Proportional, requested: dict[str, int], node: ScoredNode) -> bool:
    """Return whether the reserve is kept, checking that the compiled form gives the same."""
    kept = assess(Profile(proportional=policy), requested, node).keeps_proportion
    scorer = NodeScorer(Profile(proportional=policy), requested, node.allocatable)
    amounts = [tuple(side.get(name, 0) for name in scorer.classes) for side in (node.allocatable, node.used)]
    assert scorer.keeps_proportion(*amounts) == kept
    return kept


def amounts(cpu: int, memory: int, gpu: int = 0) -> dict[str, int]:
    return {"VCPU": cpu, "MEMORY_MB": memory * 1000, "PGPU": gpu}


FOUR_EACH = Proportional({"PGPU": {"VCPU": 4, "MEMORY_MB": 4000}})
EIGHT_EACH = Proportional({"PGPU": {"VCPU": 8, "MEMORY_MB": 8000}})


@pytest.mark.parametrize(
    ("policy", "requested", "idle", "expected"),
    [
        pytest.param(FOUR_EACH, amounts(4, 4), amounts(30, 30, 6), True, id="RS-32"),
        pytest.param(FOUR_EACH, amounts(10, 10), amounts(30, 30, 6), False, id="RS-33"),
        pytest.param(FOUR_EACH, amounts(10, 10, 1), amounts(30, 30, 6), True, id="RS-34-exempt"),
        pytest.param(FOUR_EACH, amounts(10, 10), amounts(26, 26, 2), True, id="RS-35"),
        pytest.param(FOUR_EACH, amounts(6, 6), amounts(30, 30, 6), True, id="RS-36-equality"),
        pytest.param(FOUR_EACH, amounts(7, 1), amounts(30, 30, 6), False, id="RS-37-cpu"),
        pytest.param(FOUR_EACH, amounts(1, 7), amounts(30, 30, 6), False, id="RS-37-memory"),
        pytest.param(EIGHT_EACH, amounts(8, 8), amounts(74, 128, 8), True, id="RS-38-first"),
        pytest.param(EIGHT_EACH, amounts(8, 8), amounts(66, 120, 8), False, id="RS-38-second"),
    ],
)
def test_proportional_over_what_is_idle(policy, requested, idle, expected) -> None:
    assert holds(policy, requested, ScoredNode(idle)) is expected


def test_RS_39_no_idle_gpu_needs_no_reserve() -> None:  # noqa: N802
    node = ScoredNode({"VCPU": 16, "MEMORY_MB": 16000, "PGPU": 2}, {"PGPU": 2})
    assert holds(FOUR_EACH, amounts(16, 16), node) is True


@pytest.mark.parametrize(("cpus", "expected"), [(12, True), (13, False)])
def test_a_request_for_gpus_may_be_held_to_its_own_share(cpus: int, expected: bool) -> None:
    """Volcano exempts a request for any primary completely: one GPU and all the CPUs of the node pass (RS-34).

    With ``exempt="own"``, 3 GPUs stay idle here and keep their 12 CPUs.
    """
    requested, node = {"VCPU": cpus, "PGPU": 1}, ScoredNode({"VCPU": 24, "PGPU": 4})
    assert holds(Proportional({"PGPU": {"VCPU": 4}}, exempt="own"), requested, node) is expected
    assert holds(Proportional({"PGPU": {"VCPU": 4}}, exempt="all"), requested, node) is True


def test_a_request_that_takes_its_own_share_passes_where_the_reserve_is_broken_already() -> None:
    """An inventory was reduced, for example. The reserve exists for requests like this one."""
    node = ScoredNode({"VCPU": 10, "PGPU": 4})
    own = Proportional({"PGPU": {"VCPU": 4}}, exempt="own")
    assert holds(own, {"VCPU": 4, "PGPU": 1}, node) is True
    assert holds(own, {"VCPU": 5, "PGPU": 1}, node) is False
    assert holds(own, {"VCPU": 1}, node) is False


def test_more_in_use_than_there_is_reserves_nothing() -> None:
    """Usage above capacity is legal: the inventory was reduced afterwards. It does not free any CPUs either."""
    policy, node = Proportional({"PGPU": {"VCPU": 4}}), ScoredNode({"VCPU": 4, "PGPU": 2}, {"PGPU": 3})
    assert holds(policy, {"VCPU": 4}, node) is True
    assert holds(policy, {"VCPU": 5}, node) is False


@pytest.mark.parametrize(("mode", "expected"), [("last", ["c2", "c10", "gpu"]), ("filter", ["c2", "c10"])])
def test_nodes_that_break_the_proportion_come_last_or_not_at_all(mode, expected) -> None:
    """The GPU node has the best score, and equal nodes come in the natural order of their names."""
    profile = Profile(fit=Fit(), proportional=Proportional({"PGPU": {"VCPU": 128}}, mode=mode))
    nodes = {"c10": ScoredNode({"VCPU": 8}), "gpu": ScoredNode({"VCPU": 128, "PGPU": 1}), "c2": ScoredNode({"VCPU": 8})}
    assert best_first(profile, {"VCPU": 1}, nodes) == expected
