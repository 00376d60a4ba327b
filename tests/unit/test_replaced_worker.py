"""A gunicorn worker that receives any number of stop signals."""

import subprocess
import sys

import pytest

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
