"""The server starts with placement.conf as each deployment tool writes it, unedited, and logs nothing unexpected."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

FILES = Path(__file__).parent / "files"
DEPLOYERS = sorted(path.stem for path in FILES.glob("*.conf") if not path.stem.endswith("logging"))

PROGRAM = """
from werkzeug.test import Client
from placement.wsgi.api import application
client = Client(application)
print(*(client.get(path, buffered=True).status_code for path in ("/", "/resource_providers", "/readycheck")))
"""


@pytest.fixture(params=DEPLOYERS)
def started(request: pytest.FixtureRequest, tmp_path: Path) -> "subprocess.CompletedProcess[str]":
    """The log of a server started with one of the files; only paths and the database are adapted to this machine."""
    (tmp_path / "placement.conf").write_bytes((FILES / f"{request.param}.conf").read_bytes())
    here = {
        "PLACEMENT_DATABASE__CONNECTION": f"sqlite:///{tmp_path / 'placement.sqlite'}",
        "PLACEMENT_DATABASE__SYNC_ON_STARTUP": "true",
        "DEFAULT__LOG_FILE": str(tmp_path / "placement.log"),
    }
    if request.param == "puppet-placement":
        here |= {"DEFAULT__LOG_DIR": str(tmp_path), "DEFAULT__LOG_FILE": ""}
    if request.param == "openstack-helm":
        here["DEFAULT__LOG_CONFIG_APPEND"] = str(FILES / "openstack-helm-logging.conf")
    return start(tmp_path, **here)


def start(directory: Path, **options: str) -> "subprocess.CompletedProcess[str]":
    """Start a server with the placement.conf of a directory, send it three requests, and end it."""
    return subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.pathsep.join(sys.path),
            "OS_PLACEMENT_CONFIG_DIR": str(directory),
            **{f"OS_{name}": value for name, value in options.items()},
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_a_server_starts_and_its_log_is_readable(started: "subprocess.CompletedProcess[str]", tmp_path: Path) -> None:
    assert started.returncode == 0, started.stderr
    assert "200 401 200" in started.stdout.splitlines()
    said = started.stdout + started.stderr + "".join(path.read_text() for path in tmp_path.glob("*.log"))
    assert '"GET /resource_providers" status: 401' in said
    for trouble in ("Traceback", "Logging error", "secret"):
        assert trouble not in said


def test_options_without_effect_are_named_once(tmp_path: Path) -> None:
    """Options that have an effect, which a tool may always write, are not named."""
    (tmp_path / "placement.conf").write_bytes((FILES / "puppet-placement.conf").read_bytes())
    said = start(
        tmp_path,
        PLACEMENT_DATABASE__CONNECTION=f"sqlite:///{tmp_path / 'placement.sqlite'}",
        PLACEMENT_DATABASE__SYNC_ON_STARTUP="true",
        DEFAULT__LOG_DIR="",
    ).stderr
    (line,) = [line for line in said.splitlines() if "no effect" in line]
    assert line.endswith(
        "[DEFAULT] state_path, [DEFAULT] publish_errors, [DEFAULT] instance_format, [DEFAULT] fatal_deprecations, "
        "[placement_database] connection_trace"
    )


@pytest.mark.parametrize(
    ("configuration", "sentence"),
    [
        (
            "[keystone_authtoken]\nauth_type=none\nmemcached_servers=127.0.0.1:1\nmemcache_sasl_enabled=true\n",
            "needs python-binary-memcached, which is not installed: pip install python-binary-memcached.",
        ),
        ("[api]\nauth_strategy=noauth2\n[placement_database]\nconnection=sqlite://\n", "SQLite in memory"),
    ],
    ids=["memcached", "database"],
)
def test_what_stops_the_start_is_one_sentence_and_a_status(tmp_path: Path, configuration: str, sentence: str) -> None:
    (tmp_path / "placement.conf").write_text(configuration)
    own = {
        "PLACEMENT_DATABASE__CONNECTION": f"sqlite:///{tmp_path / 'placement.sqlite'}",
        "PLACEMENT_DATABASE__SYNC_ON_STARTUP": "true",
    }
    done = start(tmp_path, **({} if "connection=" in configuration else own))
    assert done.returncode == 1
    assert sentence in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
