"""Traces: how files are read, and what the tasks in them get."""

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.allocators.fragmentation.hosts import DeviceSupply, DeviceTask, FreeDevice, FreeHost
from placement.allocators.fragmentation.outlook import Outlook
from placement.cli.simulation import traces
from placement.cli.simulation.packing import FillingHosts, come_and_gone, filled

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
    half = (1, 500, ["G2", "T4"])
    assert [(task.devices, task.share, sorted(task.kinds)) for task in trace.tasks] == [
        *[(0, 0, []), half, (1, 1000, []), half]
    ]
    assert trace.expected[trace.tasks[1]] == 2


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


HOSTS = "host,devices,kind,VCPU,MEMORY_MB\na,1,T4,8,100\nb,0,,16,200\n"
PLAIN_TASKS = (
    "devices,share,kinds,VCPU,MEMORY_MB,comes,goes\n1,600,T4,2,10,0,10\n1,600,,2,10,5,15\n1,400,,2,10,6,8\n"
    "1,600,,2,10,10,20\n0,,,4,10,0,100\n"
)


@pytest.fixture
def plain_folder(tmp_path: Path) -> Path:
    (tmp_path / "hosts.csv").write_text(HOSTS)
    (tmp_path / "tasks_default.csv").write_text(PLAIN_TASKS)
    return tmp_path


def test_the_plain_form_is_read(plain_folder: Path) -> None:
    trace = traces.read(plain_folder, "default")
    assert trace.hosts == [
        FreeHost({"VCPU": 8, "MEMORY_MB": 100}, (FreeDevice(1000, "T4"),)),
        FreeHost({"VCPU": 16, "MEMORY_MB": 200}),
    ]
    assert [(task.devices, task.share, sorted(task.kinds)) for task in trace.tasks] == [
        *[(1, 600, ["T4"]), (1, 600, []), (1, 400, []), (1, 600, []), (0, 0, [])]
    ]
    assert trace.stays[2] == (6, 8)


def test_what_has_left_makes_room(plain_folder: Path) -> None:
    """The second task comes too early, the fourth at the moment when the first departs."""
    done = come_and_gone(traces.read(plain_folder, "default"), "fragmentation")
    assert done.refused == {"a part": 1}
    assert done.placed == pytest.approx(100 * (6000 + 800 + 6000) / (18000 + 800))
    assert done.peak_percent == max(done.by_time) == 100
    assert done.mean == pytest.approx(100 * (6000 + 800 + 6000) / (1000 * 100))


def test_tasks_are_placed_by_what_has_arrived_before(plain_folder: Path) -> None:
    """The first takes either GPU. Had the second been known, each would have found a place."""
    (plain_folder / "hosts.csv").write_text("host,devices,kind,VCPU\na,1,T4,8\nb,1,G2,8\n")
    refused = []
    for kind in ("T4", "G2"):
        tasks = f"devices,share,kinds,VCPU,comes,goes\n1,1000,,1,0,9\n1,1000,{kind},1,1,9\n"
        (plain_folder / "tasks_default.csv").write_text(tasks)
        refused += come_and_gone(traces.read(plain_folder, "default"), "fragmentation").refused
    assert refused == ["1 GPU"]


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
