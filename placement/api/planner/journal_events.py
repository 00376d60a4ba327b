"""The journal as server-sent events. Each event holds what polling with ``after`` returns, including the cursor.

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
    """What a client follows: which rows, how many per event at most, and how far it has read."""

    wanted: Wanted
    limit: int
    cursor: Cursor


def opening(following: Following, *, come_again_ms: int = COME_AGAIN_MS) -> bytes:
    """Return the start of a stream: the client's position, and when to reconnect after the stream has ended."""
    return b"retry: %d\nid: %s\n\n" % (come_again_ms, following.cursor.text.encode())


def next_event(database: Database, following: Following) -> tuple[bytes, Following]:
    """Return the next event, empty if there is none, and the position after it. Its data is what ``after`` returns.

    Raises:
        CursorGone: rows that the client has not seen may have been deleted.
    """
    entries, reached = read_feed(database, following.cursor, following.wanted, limit=following.limit)
    return _event(entries, reached) if entries else b"", replace(following, cursor=reached)


def _event(entries: list[Entry], reached: Cursor) -> bytes:
    data = orjson.dumps({"entries": [entry_json(entry) for entry in entries], "cursor": reached.text})
    return b"id: %s\ndata: %s\n\n" % (reached.text.encode(), data)


def heartbeat(following: Following) -> bytes:
    """Return a comment that keeps the connection alive and updates the client's position; it is not an event."""
    return b":\nid: %s\n\n" % following.cursor.text.encode()
