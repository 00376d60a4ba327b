"""Journal rows as JSON, without the fields that a row does not have, and as server-sent events."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import orjson

from placement.errors import Invalid
from placement.services.journal import read_feed
from placement.store.connection.database import Database
from placement.store.journal.cursor import Cursor
from placement.store.journal.reading import Entry, Wanted

COME_AGAIN_MS = 2000


def entry_json(entry: Entry) -> dict[str, Any]:
    """Return a row as clients see it."""
    shown = {
        "id": entry.id,
        "time": time_text(entry.time),
        "kind": entry.kind,
        "action": entry.action,
        "provider_uuid": entry.provider_uuid,
        "consumer_uuid": entry.consumer_uuid,
        "project_id": entry.project,
        "user_id": entry.user,
        "consumer_type": entry.consumer_type,
        "resource_class": entry.resource_class,
        "name": entry.name,
        "old_amount": entry.old_amount,
        "new_amount": entry.new_amount,
        "generation": entry.generation,
        "old": entry.old,
        "new": entry.new,
        "request_id": entry.request_id,
        "by_user_id": entry.by_user or None,
        "by_project_id": entry.by_project or None,
        "route": entry.route,
    }
    return {name: value for name, value in shown.items() if value is not None}


def time_text(moment: datetime) -> str:
    """Return a journal timestamp, which is naive UTC, in ISO 8601."""
    return moment.isoformat(timespec="milliseconds") + "Z"


def moment_of(text: str) -> datetime:
    """Parse an ISO 8601 time to naive UTC, as in the tables; without an offset it is taken as UTC.

    Raises:
        Invalid: the text is not a time in ISO 8601.
    """
    try:
        moment = datetime.fromisoformat(text)
        return moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError) as error:
        hint = " In an address, + is written %2B." if " " in text else ""
        raise Invalid(f"'{text[:100]}' is not a time in ISO 8601.{hint}") from error


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
