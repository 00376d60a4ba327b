"""[api] max_worker_memory_mb: a worker that uses too much memory is replaced, and no client notices."""

import signal
from pathlib import Path

from tests import servers
from tests.survival.load import send
from tests.survival.traffic import workers

REQUESTS = 2  # each stops a worker, and a new one takes a second of CPU


def test_a_worker_that_holds_too_much_is_replaced_after_its_answer(sqlite_url: str, tmp_path: Path) -> None:
    sections = servers.default_sections(sqlite_url)
    servers.write_configuration(tmp_path, sections)
    served = servers.started_server(servers.this_project(), tmp_path, workers=2)
    try:
        # Not from the start: the check whether the server is up would stop its workers.
        sections["api"]["max_worker_memory_mb"] = "1"
        servers.write_configuration(tmp_path, sections)
        unbounded = {*workers(served)}
        served.process.send_signal(signal.SIGHUP)
        servers.until(lambda: len(workers(served)) == 2 and unbounded.isdisjoint(workers(served)))
        for number in range(REQUESTS):
            before = {*workers(served)}
            answer = send(served.url, "POST", "/resource_providers", {"name": f"host{number}"})
            assert answer.status == 200
            servers.until(lambda before=before: not before.issuperset(workers(served)))
        assert len(send(served.url, "GET", "/resource_providers").document["resource_providers"]) == REQUESTS
    finally:
        served.stop()
    assert "more than [api] max_worker_memory_mb, and is being replaced" in (tmp_path / "server.log").read_text()
