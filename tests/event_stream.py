"""A minimal client for server-sent events: a socket, a header, and blocks between empty lines."""

import json
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

TIMEOUT_S = 60


@dataclass(frozen=True, slots=True)
class Block:
    """The text between two empty lines."""

    id: str
    data: Any


class Stream:
    """An answer of type text/event-stream that is being read."""

    def __init__(self, connection: socket.socket) -> None:
        self._file = connection.makefile("rb")
        self._connection = connection
        self.status = int(self._line().split()[1])
        self.headers = dict(self._headers())
        self._is_chunked = self.headers.get("transfer-encoding") == "chunked"
        self._text = b""

    def blocks(self) -> Iterator[Block]:
        """Yield the blocks until the server ends the stream."""
        while (block := self.next_block()) is not None:
            yield block

    def next_block(self) -> Block | None:
        """Return the next block, or None if the server ends the stream."""
        while b"\n\n" not in self._text:
            if not (more := self._more()):
                return None
            self._text += more
        block, _, self._text = self._text.partition(b"\n\n")
        fields = dict(line.split(": ", 1) for line in block.decode().split("\n") if ": " in line)
        return Block(fields.get("id", ""), json.loads(fields["data"]) if "data" in fields else None)

    def next_event(self) -> Block:
        """Return the next block with changes."""
        for block in self.blocks():
            if block.data is not None:
                return block
        raise AssertionError("the stream has ended")

    def rest(self) -> bytes:
        """Return everything that the server sends until it ends the answer."""
        return self._file.read()

    def close(self) -> None:
        """Close the connection."""
        self._file.close()
        self._connection.close()

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def _line(self) -> str:
        return self._file.readline().decode("latin-1").rstrip("\r\n")

    def _headers(self) -> Iterator[tuple[str, str]]:
        while line := self._line():
            name, _, value = line.partition(": ")
            yield name.lower(), value

    def _more(self) -> bytes:
        if not self._is_chunked:
            return self._file.read1(65536)  # type: ignore[attr-defined]
        size = int(self._line() or "0", 16)
        chunk = self._file.read(size)
        self._line()
        return chunk


def request_text(path: str, **headers: str) -> bytes:
    """Return the text of a request for events."""
    every = {"host": "localhost", "accept": "text/event-stream", "x-auth-token": "admin", **headers}
    lines = [f"GET {path} HTTP/1.1", *(f"{name.replace('_', '-')}: {value}" for name, value in every.items()), "", ""]
    return "\r\n".join(lines).encode()


def listen(url: str, query: str = "", **headers: str) -> Stream:
    """Request the journal's events from a server, below any prefix."""
    place = urlsplit(url)
    connection = socket.create_connection((place.hostname or "", place.port or 80), timeout=TIMEOUT_S)
    connection.sendall(request_text(f"{place.path}/planner/v1/journal{query}", **headers))
    return Stream(connection)
