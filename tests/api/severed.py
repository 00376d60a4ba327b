"""A database connection that breaks at commit, so that the outcome of the transaction is unknown."""

import contextlib
import re
import select
import socket
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import URL, make_url

LONGEST = 65_536
COMMIT = re.compile(rb"(?<!AUTO)COMMIT(?!TED)")  # neither a mode nor a level of isolation


class Severed:
    """Forwards both directions until it is told to break each connection that sends COMMIT.

    ``after`` tells whether the database receives the COMMIT: then it is executed, but the answer is lost.
    """

    def __init__(self, listener: socket.socket, database: str, *, after: bool) -> None:
        self.is_armed = False
        self.commits = 0
        self._listener = listener
        self._database = database
        self._after = after

    def serve(self) -> None:
        """Accept connections until the listener is closed."""
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self._pass_on, args=(self._listener.accept()[0],), daemon=True).start()

    def _pass_on(self, client: socket.socket) -> None:
        with client, socket.socket(socket.AF_UNIX) as database, contextlib.suppress(OSError):
            database.connect(self._database)
            others = {client: database, database: client}
            while True:
                for source in select.select([client, database], [], [])[0]:
                    said = source.recv(LONGEST)
                    if not said or (source is client and self._ends_at(said, database)):
                        return
                    others[source].sendall(said)

    def _ends_at(self, said: bytes, database: socket.socket) -> bool:
        if not (self.is_armed and COMMIT.search(said)):
            return False
        self.commits += 1
        if self._after:
            database.sendall(said)
            database.recv(LONGEST)
        return True


@contextlib.contextmanager
def severed(url: str, *, after: bool) -> Iterator[tuple[Severed, str]]:
    """Yield such a proxy to the database of a URL with a Unix socket, and the URL that leads through it."""
    with tempfile.TemporaryDirectory(prefix="severed-") as directory, socket.socket(socket.AF_UNIX) as listener:
        database, ours, parameters = _places(make_url(url), Path(directory))
        listener.bind(str(ours))
        listener.listen()
        way = Severed(listener, database, after=after)
        thread = threading.Thread(target=way.serve)
        thread.start()
        yield way, make_url(url).update_query_dict(parameters).render_as_string(hide_password=False)
        # Closing alone would leave accept() waiting.
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


def _places(url: URL, directory: Path) -> tuple[str, Path, dict[str, str]]:
    """Return where the database listens, where the proxy listens, and the changes to the URL."""
    if url.get_backend_name() == "postgresql":
        name = f".s.PGSQL.{url.port or 5432}"
        return f"{url.query['host']}/{name}", directory / name, {"host": str(directory)}
    ours = directory / "socket"
    return str(url.query["unix_socket"]), ours, {"unix_socket": str(ours)}
