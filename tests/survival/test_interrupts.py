"""Ctrl-C: a terminal sends SIGINT to every process of a server, and the first one sends SIGQUIT to its workers.

``--long`` sends both to workers 300 times.
"""

import os
import signal
import sys
from pathlib import Path

import pytest

from tests import servers
from tests.concurrency.together import together
from tests.survival.load import send
from tests.survival.traffic import workers

WORKERS = 2
ROUNDS = 15


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
            servers.until(lambda: len(workers(served)) == WORKERS)
            requests = [lambda: send(served.url, "GET", "/resource_providers").status] * 2 * WORKERS
            assert together(requests) == [200] * len(requests)
            before = {*workers(served)}
            for worker in before:
                os.kill(worker, signal.SIGINT)
                os.kill(worker, signal.SIGQUIT)
            servers.until(lambda before=before: before.isdisjoint(workers(served)))
        os.killpg(served.process.pid, signal.SIGINT)
        assert served.process.wait(servers.STOP_TIMEOUT_S) == 0
    finally:
        served.stop()
    assert "SIGKILL" not in (tmp_path / "server.log").read_text()
