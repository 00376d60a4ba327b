"""How many cores a process may use, including in a container."""

import os
from pathlib import Path

import pytest

from placement.cli.serve import cores

PRESENT = len(os.sched_getaffinity(0))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("100000 100000", 1),
        ("50000 100000", 1),
        ("150000 100000", min(2, PRESENT)),
        ("max 100000", PRESENT),
        ("99900000 100000", PRESENT),
        ("nonsense", PRESENT),
        ("1 0", PRESENT),
    ],
)
def test_a_quota_of_cpu_time_counts_as_cores(tmp_path: Path, text: str, expected: int):
    (tmp_path / "cpu.max").write_text(text)
    assert cores(tmp_path / "cpu.max") == expected


def test_without_a_quota_all_cores_are_used(tmp_path: Path):
    assert cores(tmp_path / "nothing") == PRESENT
