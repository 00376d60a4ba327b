"""gunicorn with our sample configuration, which loads the application before it forks."""

import signal
import sys
from pathlib import Path

import pytest

from tests import servers
from tests.deploy.samples import sample
from tests.deploy.streams import end, follow
from tests.deploy.walk import log_is_quiet, walk_through
from tests.http_calls import HttpCalls


def test_the_sample_serves(configured: Path):
    port = servers.free_port()
    (configured / "gunicorn.conf.py").write_text(
        sample("gunicorn/gunicorn.conf.py", ("127.0.0.1:8778", f"127.0.0.1:{port}"))
    )
    command = [sys.executable, "-m", "gunicorn", "--config", str(configured / "gunicorn.conf.py")]
    with servers.running(command, configured, port) as served:
        walk_through(served.url)
        streams = follow(served.url)
        served.process.terminate()
        assert served.process.wait(servers.STOP_TIMEOUT_S) == 0
        end(streams)
    log_is_quiet(configured / "server.log")


def test_a_server_of_one_thread_is_not_held_up_by_those_who_follow_the_journal(configured: Path):
    with servers.running_server(servers.this_project(), configured, threads=1) as url:
        for stream in follow(url):
            stream.close()


@pytest.mark.parametrize(
    "application",
    [["--config", "python:placement.wsgi.gunicorn"], ["placement.wsgi.api:application"]],
    ids=["", "bare"],
)
def test_a_broken_planner_file_does_not_end_it(configured: Path, application: list[str]):
    """README's first command for production, and gunicorn without our settings, on SIGHUP."""
    port = servers.free_port()
    file, log = configured / "planner.yaml", configured / "server.log"
    file.write_text("levels:\n  numa: HW_NUMA_ROOT\n")
    command = [sys.executable, "-m", "gunicorn", *application, "--graceful-timeout", "2"]
    with servers.running([*command, "--bind", f"127.0.0.1:{port}", "--workers", "2"], configured, port) as served:
        call = HttpCalls(served.url)
        file.write_text("levels: [\n")
        served.process.send_signal(signal.SIGHUP)
        servers.until(lambda: "planner.yaml, line 2: expected YAML" in log.read_text())
        assert levels_of(call) == ["numa"]
        file.write_text("levels:\n  socket: CUSTOM_SOCKET\n")
        served.process.send_signal(signal.SIGHUP)
        servers.until(lambda: levels_of(call) == ["socket"])


def levels_of(call: HttpCalls) -> list[str]:
    status, document = call("GET", "/planner/v1/profiles", "1.39")
    assert status == 200, document
    return list(document["levels"])
