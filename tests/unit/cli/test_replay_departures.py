"""Users' own traces, and tasks that depart."""

from pathlib import Path

import pytest

from placement.allocators.fragmentation import FreeDevice, FreeHost, Outlook
from placement.cli.simulation import traces
from placement.cli.simulation.packing import FillingHosts, come_and_gone

HOSTS = "host,devices,kind,VCPU,MEMORY_MB\na,1,T4,8,100\nb,0,,16,200\n"
TASKS = (
    "devices,share,kinds,VCPU,MEMORY_MB,comes,goes\n1,600,T4,2,10,0,10\n1,600,,2,10,5,15\n1,400,,2,10,6,8\n"
    "1,600,,2,10,10,20\n0,,,4,10,0,100\n"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "hosts.csv").write_text(HOSTS)
    (tmp_path / "tasks_default.csv").write_text(TASKS)
    return tmp_path


def test_the_plain_form_is_read(folder: Path) -> None:
    trace = traces.read(folder, "default")
    assert trace.hosts == [
        FreeHost({"VCPU": 8, "MEMORY_MB": 100}, (FreeDevice(1000, "T4"),)),
        FreeHost({"VCPU": 16, "MEMORY_MB": 200}),
    ]
    assert [(task.devices, task.share, sorted(task.kinds)) for task in trace.tasks] == [
        (1, 600, ["T4"]),
        (1, 600, []),
        (1, 400, []),
        (1, 600, []),
        (0, 0, []),
    ]
    assert trace.stays[2] == (6, 8)


def test_what_has_left_makes_room(folder: Path) -> None:
    """The second task comes too early, the fourth at the moment when the first departs."""
    done = come_and_gone(traces.read(folder, "default"), "fragmentation")
    assert done.refused == {"a part": 1}
    assert done.placed == pytest.approx(100 * (6000 + 800 + 6000) / (18000 + 800))
    assert done.most == max(done.by_time) == 100
    assert done.mean == pytest.approx(100 * (6000 + 800 + 6000) / (1000 * 100))


def test_tasks_are_placed_by_what_has_arrived_before(folder: Path) -> None:
    """The first takes either GPU. Had the second been known, each would have found a place."""
    (folder / "hosts.csv").write_text("host,devices,kind,VCPU\na,1,T4,8\nb,1,G2,8\n")
    refused = []
    for kind in ("T4", "G2"):
        tasks = f"devices,share,kinds,VCPU,comes,goes\n1,1000,,1,0,9\n1,1000,{kind},1,1,9\n"
        (folder / "tasks_default.csv").write_text(tasks)
        refused += come_and_gone(traces.read(folder, "default"), "fragmentation").refused
    assert refused == ["1 GPU"]


def test_giving_back_leaves_the_host_as_it_was(folder: Path) -> None:
    trace = traces.read(folder, "default")
    filling = FillingHosts(trace.hosts, Outlook(trace.expected, trace.supply))
    for task in trace.tasks[:1] + trace.tasks[2:3]:
        held = filling.placed(task)
        assert held is not None
        filling.give_back(task, held)
        assert filling.hosts == trace.hosts


def test_a_file_with_no_number_where_one_is_wanted_is_told(folder: Path) -> None:
    (folder / "hosts.csv").write_text("host,devices,kind,VCPU\na,one,,1\n")
    with pytest.raises(traces.NoTrace, match=r"hosts\.csv"):
        traces.read(folder, "default")
