"""What a process does with its machine and its signals: cores, the garbage collector, Ctrl-C, SIGTERM."""

import gc
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from placement.app import create_app
from placement.cli.output import noted_interrupts
from placement.cli.serve import cores
from placement.settings import DatabaseSettings, Settings

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


def test_who_makes_an_application_keeps_the_process_as_it_is(tmp_path: Path) -> None:
    """Frozen objects are never freed, so each application of a test run would stay in memory."""
    database = DatabaseSettings(connection=f"sqlite:///{tmp_path / 'own.sqlite'}", sync_on_startup=True)
    gc.unfreeze()
    app = create_app(Settings(database=database, auth_strategy="noauth2"))
    app.extensions["placement"].database.dispose()
    assert gc.get_freeze_count() == 0


CYCLES = """
import sys, weakref
from placement.app import create_app
from placement.settings import DatabaseSettings, Settings
from placement.tuning import MANY_NEW_OBJECTS, spare_the_collector
class Cycle:
    def __init__(self):
        self.itself = self
database = DatabaseSettings(connection=f"sqlite:///{sys.argv[1]}/own.sqlite", sync_on_startup=True)
client = create_app(Settings(database=database, auth_strategy="noauth2")).test_client()
spare_the_collector()
cycle = weakref.ref(Cycle())
for others in (MANY_NEW_OBJECTS // 2, MANY_NEW_OBJECTS, 2 * MANY_NEW_OBJECTS):
    many = [[] for _ in range(others)]
    print(cycle() is not None)
    client.get("/")
print(cycle() is not None)
"""


def test_cycles_go_between_two_requests_once_there_are_many_new_objects(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", CYCLES, tmp_path], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "True", "False", "False"]


@pytest.fixture(autouse=True)
def _heard() -> Iterator[None]:
    """Ctrl-C is heard, even if the tests run in the background of a shell that ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def press() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_the_first_is_noted_and_the_second_raised() -> None:
    with noted_interrupts() as interrupts:
        assert not interrupts.has_come
        press()
        assert interrupts.has_come
        with pytest.raises(KeyboardInterrupt):
            press()


def test_afterwards_the_first_is_raised_as_before() -> None:
    with noted_interrupts():
        pass
    with pytest.raises(KeyboardInterrupt):
        press()


def test_nobody_waits_on_after_it() -> None:
    before = signal.signal(signal.SIGALRM, lambda _number, _frame: press())
    with noted_interrupts() as interrupts:
        begun = time.monotonic()
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        interrupts.wait(60)
        interrupts.wait(60)
        assert time.monotonic() - begun < 30
    signal.signal(signal.SIGALRM, before)


WORKER = """
import signal, time
from types import SimpleNamespace
from gunicorn.workers.base import Worker
from placement.wsgi import stay_while_configuration_is_invalid

worker = Worker.__new__(Worker)
worker.alive, worker.cfg = True, SimpleNamespace(workers=10**6)
signal.signal(signal.SIGTERM, worker.handle_exit)
stay_while_configuration_is_invalid()
print("ready", flush=True)
until = time.monotonic() + 0.2
while worker.alive or time.monotonic() < until:
    pass
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ended", flush=True)
"""


@pytest.mark.exhaustive
def test_signals_that_interrupt_each_other_end_it_once():
    """Whoever stops it may signal the whole process group as well as its arbiter: handlers are then nested."""
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", WORKER], stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        while process.poll() is None:
            process.terminate()
        output, errors = process.communicate()
    assert (output, errors, process.returncode) == ("ended\n", "", 0)
