"""Packing a published trace: what is read, and that only changed hosts are scored again."""

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.allocators.fragmentation import DeviceSupply, DeviceTask, FreeDevice, FreeHost, Outlook
from placement.cli.simulation import traces
from placement.cli.simulation.packing import FillingHosts, filled

NODES = "sn,cpu_milli,memory_mib,gpu,model\na,32000,1024,0,\nb,96000,2048,2,T4\nc,96000,2048,1,G2\n"
TASKS = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n"
    "p,1000,10,0,0,\nq,2000,20,1,500,T4|G2\nr,2000,20,1,1000,\ns,2000,20,1,500,T4|G2\n"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "node_list_all_node.csv").write_text(NODES)
    (tmp_path / "pod_list_default.csv.gz").write_bytes(gzip.compress(TASKS.encode()))
    return tmp_path


def test_hosts_and_tasks_are_read_plain_and_gzipped(folder: Path):
    trace = traces.read(folder, "default")
    assert [len(host.devices) for host in trace.hosts] == [0, 2, 1]
    assert trace.supply == DeviceSupply({"T4": 2000, "G2": 1000}, 1000, {"CPU": 96000, "MEMORY": 2048}, 2)
    assert [(task.devices, task.share, sorted(task.kinds)) for task in trace.tasks] == [
        (0, 0, []),
        (1, 500, ["G2", "T4"]),
        (1, 1000, []),
        (1, 500, ["G2", "T4"]),
    ]
    assert trace.expected[trace.tasks[1]] == 2


def test_a_file_without_models_has_tasks_for_any(folder: Path):
    (folder / "pod_list_old.csv").write_text("cpu_milli,memory_mib,num_gpu,gpu_milli\n1,1,1,1000\n")
    assert traces.read(folder, "old").tasks[0].kinds == frozenset()


def test_arrivals_ask_for_just_so_much_and_are_the_same_for_a_seed(folder: Path):
    trace = traces.read(folder, "default")
    arrivals = trace.arrivals(42, percent=200)
    assert 6000 <= sum(task.devices * task.share for task in arrivals) < 7000
    assert arrivals == trace.arrivals(42, percent=200)
    assert arrivals != trace.arrivals(43, percent=200)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("gone", None),
        ("broken", "cpu_milli,memory_mib,num_gpu,gpu_milli\n1,x,1,1000\n"),
        ("other", "a,b\n1,2\n"),
        ("short", "cpu_milli,memory_mib,num_gpu,gpu_milli\n1,1,1\n"),
        ("long", "cpu_milli,memory_mib,num_gpu,gpu_milli\n1,1,1,1000,9\n"),
    ],
    ids=["no file", "no number", "no such column", "too few fields", "too many fields"],
)
def test_what_is_no_trace_is_told_with_its_file(folder: Path, name: str, text: str | None):
    if text is not None:
        (folder / f"pod_list_{name}.csv").write_text(text)
    with pytest.raises(traces.NoTrace, match=name):
        traces.read(folder, name)


@pytest.mark.parametrize("policy", ["best fit", "gradient", "fragmentation"])
def test_a_run_allocates_no_more_than_there_is(folder: Path, policy: str):
    done = filled(traces.read(folder, "default"), policy, 42)
    assert all(0 < share <= 100 for share in done.allocated.values())
    assert list(done.allocated_by_arrival) == sorted(done.allocated_by_arrival)
    assert done.allocated[100] == done.allocated_by_arrival[50]


def test_a_run_as_far_as_a_milestone_is_the_beginning_of_the_whole(folder: Path):
    trace = traces.read(folder, "default")
    whole, begun = filled(trace, "gradient", 42), filled(trace, "gradient", 42, until=110)
    assert begun.allocated == {100: whole.allocated[100], 110: whole.allocated[110]}
    assert begun.refused == whole.refused


def test_a_last_task_that_goes_far_beyond_the_end_adds_no_sample(folder: Path):
    """With three GPUs, a task for one of them is more than 30 %: seeds end at different shares."""
    trace = traces.read(folder, "default")
    assert {len(filled(trace, "best fit", seed).allocated_by_arrival) for seed in range(42, 50)} == {66}


tasks = st.builds(lambda amount, share: DeviceTask({"C": amount}, 1, share), st.integers(0, 3), st.integers(1, 10))


@given(st.lists(tasks, min_size=1, max_size=4), st.lists(st.integers(0, 3), max_size=20))
def test_each_task_goes_to_a_host_that_is_cheapest_then(some: list[DeviceTask], arrivals: list[int]):
    outlook = Outlook(dict.fromkeys(some, 1), DeviceSupply({"": 60}, 10, {"C": 8}, 2))
    empty = FreeHost({"C": 8}, (FreeDevice(10), FreeDevice(10)))
    filling = FillingHosts([empty, FreeHost({"C": 4}, (FreeDevice(10),)), empty], outlook)
    for number in arrivals:
        task, before = some[number % len(some)], list(filling.hosts)
        costs = [outlook.cost(host, task) for host in before if task.fits(host)]
        assert filling.place(task) == bool(costs)
        changed = [host for host, now in zip(before, filling.hosts, strict=True) if host is not now]
        assert [outlook.cost(host, task) for host in changed] == ([min(costs)] if costs else [])
