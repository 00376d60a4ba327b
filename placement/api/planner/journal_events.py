"""The journal as server-sent events: what they look like. Each holds what a poller gets for ``after``, and its cursor.

https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

from dataclasses import dataclass, replace

import orjson

from placement.api.planner.journal_json import entry_json
from placement.services.journal import read_feed
from placement.store.connection.database import Database
from placement.store.journal.cursor import Cursor
from placement.store.journal.reading import Entry, Wanted

COME_AGAIN_MS = 2000


@dataclass(frozen=True, slots=True)
class Following:
    """What a client follows: which rows, at most how many in an event, and what it has seen."""

    wanted: Wanted
    limit: int
    cursor: Cursor


def opening(following: Following, *, come_again_ms: int = COME_AGAIN_MS) -> bytes:
    """Return what a stream begins with: where the client stands, and when to come again when the stream has ended."""
    return b"retry: %d\nid: %s\n\n" % (come_again_ms, following.cursor.text.encode())


def next_event(database: Database, following: Following) -> tuple[bytes, Following]:
    """Return the event that comes next, if there is one, and where it leads. Its data is the answer to ``after``.

    Raises:
        CursorGone: rows that were not seen may be gone.
    """
    entries, reached = read_feed(database, following.cursor, following.wanted, limit=following.limit)
    return _event(entries, reached) if entries else b"", replace(following, cursor=reached)


def _event(entries: list[Entry], reached: Cursor) -> bytes:
    data = orjson.dumps({"entries": [entry_json(entry) for entry in entries], "cursor": reached.text})
    return b"id: %s\ndata: %s\n\n" % (reached.text.encode(), data)


def heartbeat(following: Following) -> bytes:
    """Return what is no event, but moves a client forward that wants little of what is told."""
    return b":\nid: %s\n\n" % following.cursor.text.encode()
