"""Journal rows as JSON, and the clients that follow them as server-sent events, served by one thread of the process.

They occupy no thread of the server, which has handed over their connections (``middleware.py``). The thread checks for
commits, reads once for all clients at the same position with the same filter, and writes as much as each connection
accepts. It reads nothing for a client that has not yet received its last event, so a slow client costs others nothing,
and no more memory than one event.
"""

import contextlib
import logging
import selectors
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import orjson

from placement.api.connections import Connection
from placement.errors import Gone, Invalid, Unavailable
from placement.services.journal import newest, read_feed
from placement.store.connection.database import Database
from placement.store.journal.order import Cursor
from placement.store.journal.reading import Entry, EntryFilter

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


def time_text(instant: datetime) -> str:
    """Return a journal timestamp, which is naive UTC, in ISO 8601."""
    return instant.isoformat(timespec="milliseconds") + "Z"


def moment_of(text: str) -> datetime:
    """Parse an ISO 8601 time, by default in UTC, to naive UTC, as in the tables; Invalid if it is none."""
    try:
        instant = datetime.fromisoformat(text)
        return instant if instant.tzinfo is None else instant.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError) as error:
        hint = " In an address, + is written %2B." if " " in text else ""
        raise Invalid(f"'{text[:100]}' is not a time in ISO 8601.{hint}") from error


@dataclass(frozen=True, slots=True)
class Following:
    """What a client follows: which rows, how many per event at most, how far it has read, and whether to send them."""

    entry_filter: EntryFilter
    limit: int
    cursor: Cursor
    sends_rows: bool = True


def opening(following: Following, *, come_again_ms: int = COME_AGAIN_MS) -> bytes:
    """Return the start of a stream: the client's position, and when to reconnect after the stream has ended."""
    return b"retry: %d\nid: %s\n\n" % (come_again_ms, following.cursor.text.encode())


def next_event(database: Database, following: Following) -> tuple[bytes, Following]:
    """Return the next event, empty if there is none, and the position after it; CursorGone as ``read_feed``."""
    entries, reached = read_feed(database, following.cursor, following.entry_filter, limit=following.limit)
    shown = entries if following.sends_rows else []
    return _event(shown, reached) if entries else b"", replace(following, cursor=reached)


def _event(entries: list[Entry], reached: Cursor) -> bytes:
    data = orjson.dumps({"entries": [entry_json(entry) for entry in entries], "cursor": reached.text})
    return b"id: %s\ndata: %s\n\n" % (reached.text.encode(), data)


def heartbeat(following: Following) -> bytes:
    """Return a comment that keeps the connection alive and updates the client's position; it is not an event."""
    return b":\nid: %s\n\n" % following.cursor.text.encode()


LOG = logging.getLogger(__name__)


class TooManyListeners(Unavailable):
    """As many clients follow the journal here as [journal] listeners allows; try again, or poll with after=CURSOR."""


@dataclass(frozen=True, slots=True)
class Pace:
    """Intervals in seconds.

    They are between looks for commits, of silence before a heartbeat, until a client has to connect again, and for
    which it may accept nothing.
    """

    look_s: float = 0.5
    heartbeat_s: float = 15.0
    longest_s: float = 900.0
    stalled_s: float = 30.0


class Listener:
    """One client: admitted, then given its connection, from then on used by the thread alone."""

    def __init__(self, listeners: "Listeners", following: Following) -> None:
        self.following = following
        self.connection: Connection | None = None
        self.unsent = memoryview(b"")
        self.ends_at = self.spoke_at = 0.0
        self._listeners = listeners

    def keep(self, connection: Connection) -> None:
        """Take over this connection and follow the journal on it."""
        connection.socket.settimeout(0)
        self.connection = connection
        self._listeners.welcome(self)

    def withdraw(self) -> None:
        """Give up this client's place."""
        self._listeners.forget(self)

    @property
    def socket(self) -> socket.socket:
        """The connection's socket."""
        assert self.connection is not None
        return self.connection.socket

    def send(self, now: float) -> None:
        """Send as much as the connection accepts. Raises OSError if the client has gone."""
        with contextlib.suppress(BlockingIOError):
            while self.unsent:
                self.unsent = self.unsent[self.socket.send(self.unsent) :]
                self.spoke_at = now


class Listeners:
    """All clients of this process that follow the journal; ``on_change`` is called with their number.

    One thread, which the first client starts, serves them; they are admitted and welcomed by others.
    """

    def __init__(
        self,
        database: Database,
        max_clients: int,
        *,
        on_change: Callable[[int], object] | None = None,
        pace: Pace = Pace(),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._database = database
        self._most = max_clients
        self._on_change = on_change
        self._pace = pace
        self._clock = clock
        self._lock = threading.Lock()
        self._admitted: set[Listener] = set()
        self._welcomed: list[Listener] = []
        self._bell: socket.socket | None = None
        """Wakes up the thread, once there is one."""
        self._served: list[Listener] = []
        self._look_at = 0.0
        self._is_failing = False

    @cached_property
    def _selector(self) -> selectors.DefaultSelector:
        return selectors.DefaultSelector()

    def __len__(self) -> int:
        return len(self._admitted)

    def admit(self, following: Following) -> Listener:
        """Reserve a place for a client, to be given its connection or withdrawn; TooManyListeners if all are taken."""
        with self._lock:
            if len(self._admitted) >= self._most:
                raise TooManyListeners
            listener = Listener(self, following)
            self._admitted.add(listener)
            self._note_change()
            return listener

    def forget(self, listener: Listener) -> None:
        """Close the listener's connection, if any, and free its place."""
        with self._lock:
            self._admitted.discard(listener)
            self._note_change()
        if listener.connection is not None:
            listener.connection.close()

    def _note_change(self) -> None:
        if self._on_change is not None:
            self._on_change(len(self._admitted))

    def welcome(self, listener: Listener) -> None:
        """Pass a listener to the thread; the first one starts it, and it ends with the process."""
        with self._lock:
            self._welcomed.append(listener)
            if self._bell is None:
                alarm, self._bell = socket.socketpair()
                self._bell.settimeout(0)
                threading.Thread(target=self._serve, args=(alarm,), name="listeners", daemon=True).start()
            with contextlib.suppress(BlockingIOError):
                self._bell.send(b"\0")

    def _serve(self, alarm: socket.socket) -> None:
        self._selector.register(alarm, selectors.EVENT_READ)
        while True:
            self._turn(alarm)

    def _turn(self, alarm: socket.socket) -> None:
        wait = max(0.0, self._look_at - self._clock()) if self._served else None
        for key, events in self._selector.select(wait):
            if key.data is None:
                alarm.recv(4096)
                self._begin()
            else:
                self._attend(key.data, events)
        now = self._clock()
        if now >= self._look_at:
            self._look_at = now + self._pace.look_s
            self._tell_news()
            for listener in [*self._served]:
                self._care(listener, now)

    def _begin(self) -> None:
        with self._lock:
            newcomers, self._welcomed = self._welcomed, []
        now = self._look_at = self._clock()
        for listener in newcomers:
            listener.spoke_at, listener.ends_at = now, now + self._pace.longest_s
            self._selector.register(listener.socket, selectors.EVENT_READ, listener)
            self._served.append(listener)

    def _end(self, listener: Listener) -> None:
        self._served.remove(listener)
        self._selector.unregister(listener.socket)
        self.forget(listener)

    def _attend(self, listener: Listener, events: int) -> None:
        """Send more, or drop a client that has disconnected; anything it sends is ignored."""
        try:
            has_gone = events & selectors.EVENT_READ and not listener.socket.recv(4096)
        except OSError:
            has_gone = True
        if has_gone:
            self._end(listener)
        elif events & selectors.EVENT_WRITE:
            self._send(listener, b"")

    def _send(self, listener: Listener, text: bytes) -> None:
        listener.unsent = memoryview(bytes(listener.unsent) + text)
        try:
            listener.send(self._clock())
        except OSError:
            self._end(listener)
            return
        writing = selectors.EVENT_WRITE if listener.unsent else 0
        self._selector.modify(listener.socket, selectors.EVENT_READ | writing, listener)

    def _tell_news(self) -> None:
        try:
            newest_cursor = newest(self._database) if self._served else None
            events: dict[Following, tuple[bytes, Following] | None] = {}
            for listener in [*self._served]:
                if not listener.unsent and listener.following.cursor != newest_cursor:
                    self._tell(listener, events)
            self._is_failing = False
        except Exception as error:
            if not self._is_failing:
                LOG.warning("The journal cannot be read for the clients that follow it; trying again. %s", error)
            self._is_failing = True

    def _tell(self, listener: Listener, events: dict[Following, tuple[bytes, Following] | None]) -> None:
        """Send a listener its next event; the next turn sends any further ones."""
        place = listener.following
        if place not in events:
            try:
                events[place] = next_event(self._database, place)
            except Gone:
                events[place] = None
        if (event := events[place]) is None:
            self._end(listener)  # when the client reconnects, it gets the reason
            return
        text, listener.following = event
        if text:
            self._look_at = self._clock()
            self._send(listener, text)

    def _care(self, listener: Listener, now: float) -> None:
        """Close connections that have expired or stalled, and send heartbeats."""
        silence_s = now - listener.spoke_at
        if now >= listener.ends_at or (listener.unsent and silence_s >= self._pace.stalled_s):
            self._end(listener)
        elif not listener.unsent and silence_s >= self._pace.heartbeat_s:
            self._send(listener, heartbeat(listener.following))
