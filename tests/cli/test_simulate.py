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


@pytest.mark.parametrize("load", ["0", "nan", "inf", "x"])
def test_a_load_that_makes_no_sense_is_refused(placement: Command, load: str):
    done = placement.run("simulate", "--gpu-load", load)
    assert done.returncode == 2
    assert "Invalid value for '--gpu-load'" in done.stderr


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


def test_published_results_that_cannot_be_read_are_named_before_the_work(placement: Command, tmp_path: Path):
    (tmp_path / "hosts.csv").write_text("host,devices,kind\nh1,1,T4\n")
    (tmp_path / "tasks_default.csv").write_text("devices,share,kinds\n1,1000,\n")
    (tmp_path / "published_allocation.csv").write_text("workload,policy,arrived_percent,mean\ndefault,FGD,x,95.23\n")
    done = placement.run("simulate", "--trace", str(tmp_path))
    assert (done.returncode, done.stdout) == (1, "")
    assert f"{tmp_path}: a row of published_allocation.csv cannot be read: " in done.stderr
    assert "Traceback" not in done.stderr


def test_a_folder_without_a_trace_is_named(placement: Command, tmp_path: Path):
    done = placement.run("simulate", "--trace", str(tmp_path))
    assert done.returncode == 1
    assert "node_list_all_node.csv" in done.stderr


@pytest.mark.parametrize(("of_host", "of_task"), [("0,", "0,0"), ("0,", "1,1000"), ("2,T4", "0,0")])
def test_a_trace_without_devices_is_refused_at_once(placement: Command, tmp_path: Path, of_host: str, of_task: str):
    (tmp_path / "hosts.csv").write_text(f"host,devices,kind,VCPU\nh1,{of_host},4\n")
    (tmp_path / "tasks_default.csv").write_text(f"devices,share,kinds,VCPU\n{of_task},,1\n")
    done = placement.run("simulate", "--trace", str(tmp_path))
    assert (done.returncode, done.stderr) == (
        1,
        "Error: There must be hosts with devices, and tasks that ask for some.\n",
    )


def test_a_drawing_that_cannot_be_written_is_refused_before_the_work(placement: Command):
    done = placement.run("simulate", "--svg", "nowhere/curves.svg")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "Error: nowhere/curves.svg cannot be used: No such file or directory.\n"


def test_what_is_about_a_trace_wants_one(placement: Command):
    done = placement.run("simulate", "--departures")
    assert done.returncode == 2
    assert "name its folder with --trace" in done.stderr
