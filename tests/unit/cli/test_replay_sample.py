"""Three workloads of a small sample of the published trace: policies allocate the same on any machine."""

from pathlib import Path

import pytest

from placement.cli.simulation import traces
from placement.cli.simulation.packing import filled

SAMPLE = Path(__file__).parents[2] / "data" / "openb"


@pytest.mark.parametrize(
    ("workload", "expected"),
    [
        ("default", {"best fit": 90.1, "gradient": 94.1, "fragmentation": 94.1}),
        ("gpuspec33", {"best fit": 76.9, "gradient": 93.6, "fragmentation": 92.4}),
        ("multigpu40", {"best fit": 87.5, "gradient": 96.1, "fragmentation": 96.1}),
    ],
)
def test_what_is_allocated_is_the_same_everywhere(workload: str, expected: dict[str, float]) -> None:
    trace = traces.read(SAMPLE, workload)
    found = {policy: round(filled(trace, policy, 42).allocated[100], 1) for policy in expected}
    assert found == expected
