"""A full disk while clients work: 503 and a log line, nothing lost, and work continues when there is room again."""

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests import servers
from tests.postgresql import PostgreSQL
from tests.servers import check_database, configured
from tests.survival.load import Crowd, Record, check, prepared, send, wait_for

SIZE_MB = 48
MAX_S = 120
ROUTES = ["/resource_providers", "/traits", "/resource_classes", "/allocations", "/usages", "/reshaper", "/readycheck"]
ROUTES += [
    "/allocation_candidates",
    "/planner/v1/claims",
    "/planner/v1/profiles",
    "/healthcheck",
    "/planner/v1/journal",
]


class SmallDisk:
    """A small file system in memory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._ballast = path / "ballast"

    def fill(self) -> None:
        """Fill it to the last byte."""
        with contextlib.suppress(OSError), self._ballast.open("wb", buffering=0) as ballast:
            while True:
                ballast.write(b"0" * 4096)

    def free(self) -> None:
        """Make room again."""
        self._ballast.unlink()


@pytest.fixture
def disk() -> Iterator[SmallDisk]:
    with tempfile.TemporaryDirectory(prefix="disk-") as name:
        path = Path(name)
        path.chmod(0o755)  # PostgreSQL runs as another user
        mounting = ["mount", "-t", "tmpfs", "-o", f"size={SIZE_MB}m", "tmpfs", name]
        if os.geteuid() != 0 or subprocess.run(mounting, capture_output=True, check=False).returncode != 0:
            pytest.skip("a file system can be mounted by root alone")
        try:
            yield SmallDisk(path)
        finally:
            subprocess.run(["umount", "--lazy", name], check=True)


@pytest.fixture
def on_sqlite(disk: SmallDisk) -> str:
    return f"sqlite:///{disk.path / 'placement.sqlite'}"


@pytest.fixture
def on_postgresql(disk: SmallDisk, postgres_server: PostgreSQL) -> Iterator[str]:
    """A database whose tables are on the small disk; its log is elsewhere, because without it PostgreSQL stops."""
    outside, tables = postgres_server.database("beside_full_disk"), disk.path / "tables"
    tables.mkdir()
    with psycopg.connect(outside, autocommit=True) as connection:
        (data,) = connection.execute("SHOW data_directory").fetchone() or ("",)
        shutil.chown(tables, Path(data).stat().st_uid, Path(data).stat().st_gid)
        connection.execute(f"CREATE TABLESPACE small LOCATION '{tables}'")
        connection.execute("CREATE DATABASE full_disk TABLESPACE small")
        yield outside.replace("/beside_full_disk", "/full_disk")
        connection.execute("DROP DATABASE full_disk WITH (FORCE)")
        connection.execute("DROP TABLESPACE small")
    postgres_server.drop("beside_full_disk")


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgresql", marks=pytest.mark.nightly)])
def test_a_full_disk_is_waited_out(disk: SmallDisk, kind: str, request: pytest.FixtureRequest, tmp_path: Path):
    directory = configured(tmp_path / "server", request.getfixturevalue(f"on_{kind}"))
    served = servers.started_server(servers.this_project(), directory, workers=1)
    try:
        record = prepared(served.url)
        with Crowd(record, [served.url], seed=1):
            wait_for(record, 20, timeout_s=MAX_S)
            disk.fill()
            wait_for_refusals(record, 20)
            wait_for_words(served.url, "failing: disk full")
            disk.free()
            wait_for(record, 20, timeout_s=MAX_S)
        assert "writes" not in send(served.url, "GET", "/readycheck").document
        check(record, served.url)
        check_database(directory)
    finally:
        served.stop()
    log = (directory / "server.log").read_text()
    assert "Traceback" not in log
    assert "(disk full)" in log


@pytest.mark.parametrize("is_full_at_start", [True, False], ids=["at the start", "later"])
def test_a_full_disk_costs_metrics_and_no_request(
    disk: SmallDisk, sqlite_url: str, tmp_path: Path, *, is_full_at_start: bool
):
    """The files of counters are mapped, and a write to a hole of such a file kills the process."""
    sections = servers.default_sections(sqlite_url)
    sections["metrics"] = {"enabled": "true", "directory": str(disk.path / "metrics")}
    servers.write_configuration(tmp_path, sections)
    if is_full_at_start:
        disk.fill()
    served = servers.started_server(servers.this_project(), tmp_path)
    try:
        disk.fill()
        before = served.workers
        for method in ("GET", "PUT", "POST", "DELETE", "PATCH"):
            for path in ROUTES:
                assert send(served.url, method, path).status < 500
        assert served.workers == before
        request = urllib.request.Request(f"{served.url}/metrics", headers={"x-auth-token": "admin"})
        with urllib.request.urlopen(request) as answer:
            assert b"placement_usage_is_kept" in answer.read()
    finally:
        served.stop()
    assert (tmp_path / "server.log").read_text().count("goes on without metrics") == 1


def wait_for_words(url: str, words: str) -> None:
    """Wait until the server, ready all the time, says this of writes: one that still fits is the last for a moment."""
    deadline = time.monotonic() + MAX_S
    while (ready := send(url, "GET", "/readycheck")).document.get("writes") != words:
        assert (ready.status, time.monotonic() < deadline) == (200, True), ready.document
    assert ready.status == 200


def refusals(record: Record) -> int:
    return sum(count for answer, count in record.statuses.items() if answer.endswith(" 503"))


def wait_for_refusals(record: Record, count: int) -> None:
    """Wait until this many requests were answered with 503."""
    deadline = time.monotonic() + MAX_S
    while refusals(record) < count:
        assert time.monotonic() < deadline, record.statuses
        assert not record.complaints
        time.sleep(0.05)
