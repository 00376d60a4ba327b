"""``placement simulate`` compares orders of candidates and needs nothing to do it."""

from pathlib import Path
from xml.etree import ElementTree

from placement.cli.simulation.policies import policies
from tests.cli.commands import Command


def test_a_quick_run_compares_all_policies_and_draws_curves(placement: Command, tmp_path: Path):
    file = tmp_path / "curves.svg"
    done = placement.process("simulate", "--quick", "--seeds", "1", "--svg", str(file))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("50 servers, 20 of them with 8 GPUs.")
    lines = done.stdout.splitlines()
    for name in policies(1):
        assert len([line for line in lines if line.startswith(f"{name}  ")]) == 1
    judged = [line.partition(": ")[0] for line in lines if "GPU jobs are placed" in line]
    assert judged == list(policies(1))[1:]
    assert len(list(ElementTree.parse(file).iter("{http://www.w3.org/2000/svg}polyline"))) == 2 * len(policies(1))


def test_a_load_that_makes_no_sense_is_refused(placement: Command):
    done = placement.run("simulate", "--gpu-load", "0")
    assert done.returncode == 2
    assert "Invalid value for '--gpu-load'" in done.stderr
