"""``placement simulate`` compares orders of candidates, without any set-up."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

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


def test_a_trace_is_packed_by_each_policy_beside_what_was_published(placement: Command, tmp_path: Path):
    (tmp_path / "node_list_all_node.csv").write_text(
        "cpu_milli,memory_mib,gpu,model\n96000,2048,2,T4\n96000,2048,1,G2\n"
    )
    (tmp_path / "pod_list_default.csv").write_text(
        "cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n1000,10,1,500,\n2000,20,1,1000,\n"
    )
    (tmp_path / "published_allocation.csv").write_text(
        "workload,policy,arrived_percent,seeds,mean,min,max\ndefault,FGD,100,10,95.23,94.9,95.5\n"
    )
    file = tmp_path / "curves.svg"
    done = placement.run("simulate", "--trace", str(tmp_path), "--seeds", "2", "--svg", str(file))
    assert (done.returncode, done.stderr.strip()) == (0, "")
    assert [line.split()[1] for line in done.stdout.splitlines() if line.startswith("default")] == [
        *("best", "gradient", "fragmentation"),
        *("best", "gradient", "fragmentation"),
        *("best", "gradient", "fragmentation"),
    ]
    assert "..." not in done.stdout  # No heading is cut off.
    assert "95.23 (FGD)" in done.stdout
    assert len(list(ElementTree.parse(file).iter("{http://www.w3.org/2000/svg}polyline"))) == 6


def own_trace(folder: Path, tasks: str, *, of_host: str = "0,,16,64", columns: str = "") -> None:
    """Write a trace in the plain form with two equal hosts."""
    (folder / "hosts.csv").write_text(f"host,devices,kind,VCPU,MEMORY_GB\nh1,{of_host}\nh2,{of_host}\n")
    (folder / "tasks_default.csv").write_text(f"devices,share,kinds,VCPU,MEMORY_GB{columns}\n{tasks}")


@pytest.mark.parametrize(("of_host", "of_task"), [("0,,16,64", "0,0,,2,32"), ("2,T4,16,64", "0,0,,2,32")])
@pytest.mark.parametrize("times", ["", ",5,7"], ids=["filled", "with departures"])
def test_a_trace_without_devices_is_packed_by_what_is_asked_for_most(
    placement: Command, tmp_path: Path, of_host: str, of_task: str, times: str
):
    """Of the 128 GB, each task asks for a quarter."""
    own_trace(tmp_path, f"{of_task}{times}\n", of_host=of_host, columns=",comes,goes" if times else "")
    options = ["--departures"] if times else ["--seeds", "1"]
    done = placement.run("simulate", "--trace", str(tmp_path), "--policy", "fragmentation", *options)
    assert (done.returncode, done.stderr.strip()) == (0, "")
    assert ("Percent of MEMORY_GB allocated" in done.stdout) == (not times)
    (row,) = [line.split() for line in done.stdout.splitlines() if line.startswith("default")][:1]
    assert row[2:5] == (["100.00", "25.00", "25.00"] if times else ["100.00", "100.00", "100.00"])
