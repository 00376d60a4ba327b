"""gunicorn with the sample of its configuration, which loads the application before it forks."""

import sys
from pathlib import Path

from tests import servers
from tests.deploy.samples import sample
from tests.deploy.streams import end, follow
from tests.deploy.walk import log_is_quiet, walk_through


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
