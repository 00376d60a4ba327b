"""[api] max_worker_memory_mb: a worker that uses too much memory is replaced, and no client notices."""

import signal
import subprocess
from pathlib import Path

import pytest
from sqlalchemy import create_engine

from placement.tuning import resident_bytes
from tests import servers
from tests.store.rows import add_providers
from tests.survival.load import send

PROVIDERS = 15_000
"""Their list makes a worker grow by far more than it may."""
MAX_GROWTH_MB = 8


@pytest.mark.nightly
def test_a_worker_that_holds_too_much_is_replaced_after_its_answer(sqlite_url: str, tmp_path: Path) -> None:
    sections = servers.default_sections(sqlite_url)
    servers.write_configuration(tmp_path, sections)
    served = servers.started_server(servers.this_project(), tmp_path, workers=2)
    try:
        with create_engine(sqlite_url).begin() as connection:
            add_providers(connection, PROVIDERS)
        largest = max(resident_bytes(worker) for worker in served.workers) // 2**20
        sections["api"]["max_worker_memory_mb"] = str(largest + MAX_GROWTH_MB)
        servers.write_configuration(tmp_path, sections)
        unbounded = served.workers
        served.process.send_signal(signal.SIGHUP)
        servers.until(lambda: len(served.workers) == 2 and unbounded.isdisjoint(served.workers))
        before = served.workers
        assert send(served.url, "POST", "/resource_providers", {"name": "host"}).status == 200
        assert served.workers == before
        assert len(send(served.url, "GET", "/resource_providers").document["resource_providers"]) == PROVIDERS + 1
        servers.until(lambda: not before.issuperset(served.workers))
    finally:
        served.stop()
    assert "more than [api] max_worker_memory_mb, and is being replaced" in (tmp_path / "server.log").read_text()


def test_a_bound_below_what_an_idle_worker_holds_is_refused(sqlite_url: str, tmp_path: Path) -> None:
    """Each worker would stop after one request."""
    sections = servers.default_sections(sqlite_url)
    sections["api"]["max_worker_memory_mb"] = "20"
    path = servers.write_configuration(tmp_path, sections)
    command = [servers.this_project().command("placement"), "serve", "--port", "0", "--config-file", str(path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "\nError: [api] max_worker_memory_mb is 20, but a worker holds " in done.stderr
