"""A tuned process takes pages from the system once, not for every request; its effects are confined to its process."""

import ctypes
import gc
import subprocess
import sys
from pathlib import Path

import pytest

from placement.app import create_app
from placement.settings import DatabaseSettings, Settings

WORK = """
import resource, sys
from placement.tuning import retain_freed_memory
if sys.argv[1] == "tuned":
    retain_freed_memory()
def write():
    return "".join(["x" * 1_000_000] * 3).encode()
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
write()
before = faults()
for _ in range(20):
    write()
print(faults() - before)
"""


def faults(how: str) -> int:
    """Return the number of page faults of a process that writes large answers."""
    done = subprocess.run([sys.executable, "-c", WORK, how], capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="another C library than glibc")
def test_freed_memory_is_used_again_for_the_next_answer() -> None:
    assert 10 * faults("tuned") < faults("as it is")


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
