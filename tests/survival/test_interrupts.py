"""Ctrl-C: a terminal sends SIGINT to every process of a server, and the first one sends SIGQUIT to its workers.

``--long`` sends both to workers 300 times.
"""

import os
import signal
import sys
from collections.abc import Collection
from pathlib import Path

import pytest

from tests import servers
from tests.concurrency.together import together
from tests.survival.load import send

WORKERS = 2
ROUNDS = 5


def are_set_up(pids: Collection[int]) -> bool:
    """Tell whether there are enough workers, all of which ignore Ctrl-C: before, gunicorn may lose a signal."""
    return len(pids) == WORKERS and all(_ignored(pid) >> (signal.SIGINT - 1) & 1 for pid in pids)


def _ignored(pid: int) -> int:
    """Return the signals that a process ignores, as bits; none for one that has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return int(status.partition("SigIgn:")[2].split()[0], 16)


def command(kind: str, port: int) -> list[str]:
    if kind == "gunicorn":
        options = ["--config", "python:placement.wsgi.gunicorn", "--bind", f"127.0.0.1:{port}", "--workers"]
        return [sys.executable, "-m", "gunicorn", *options, str(WORKERS)]
    return [servers.this_project().command("placement"), "serve", "--port", str(port), "--workers", str(WORKERS)]


@pytest.mark.parametrize("kind", ["serve", "gunicorn"])
def test_both_signals_end_a_worker_at_once_after_requests(kind: str, sqlite_url: str, tmp_path: Path, is_long: bool):
    """The handler of the one must not wait for what the other, or a request, has locked."""
    servers.write_configuration(tmp_path, servers.default_sections(sqlite_url))
    port = servers.free_port()
    served = servers.started(command(kind, port), tmp_path, port)
    try:
        for _ in range(300 if is_long else ROUNDS):
            servers.until(lambda: are_set_up(served.workers))
            requests = [lambda: send(served.url, "GET", "/resource_providers").status] * 2 * WORKERS
            assert together(requests) == [200] * len(requests)
            before = served.workers
            for worker in before:
                os.kill(worker, signal.SIGINT)
                os.kill(worker, signal.SIGQUIT)
            servers.until(lambda before=before: before.isdisjoint(served.workers))
        servers.until(lambda: are_set_up(served.workers))
        os.killpg(served.process.pid, signal.SIGINT)
        assert served.process.wait(servers.STOP_TIMEOUT_S) == 0
    finally:
        served.stop()
    assert "SIGKILL" not in (tmp_path / "server.log").read_text()
