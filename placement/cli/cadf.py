"""``placement journal cadf``: export of the journal as CADF events, each at least once."""

import contextlib
import fcntl
import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any
from uuid import NAMESPACE_URL, uuid5

import click
import orjson

from placement.api.planner.journal_feed import entry_json
from placement.cli.configuration import chosen_settings, configured, readable
from placement.cli.output import noted_interrupts
from placement.errors import ConfigurationError, Gone, Invalid, Unavailable
from placement.logs import configure_logging
from placement.services.journal import read_feed
from placement.settings.planner.values import OwnerNames
from placement.store.connection.database import Database
from placement.store.journal.order import BEGINNING, Cursor, cursor_from
from placement.store.journal.reading import Entry
from placement.store.journal.watched import ALLOCATION, CHANGED, CONSUMER, CREATED, DELETED, GENERATION, JOURNAL

LOG = logging.getLogger(__name__)

LOOK_EVERY_S = 1.0
PORTION = 1000

Sink = Callable[[list[bytes]], None]

EVENT_TYPE = "http://schemas.dmtf.org/cloud/audit/1.0/event"
SERVICE = "service/placement"
USER = "service/security/account/user"
UNKNOWN = "unknown"
NOBODY = OwnerNames()

_ACTIONS = {CREATED: "create", CHANGED: "update", DELETED: "delete"}
_OF_CONSUMERS = frozenset({ALLOCATION, CONSUMER})
_UNTOLD = frozenset({GENERATION, JOURNAL})
"""Generations only change along with something else or carry no information; the journal itself is not a resource."""


@click.command("cadf")
@click.option("--once", is_flag=True, help="Exit when everything is written instead of waiting for more.")
@click.option("--cursor-file", help="Where to store the position.  [default: FILE.cursor, next to the file]")
@configured
def write_cadf(*, once: bool, cursor_file: str | None) -> None:
    """Write changes as CADF events, one JSON document per line, to the destination in [journal] cadf.

    The command starts with the oldest row, and later continues where it stopped. After a kill, it may write the last
    events again, with the same ids.
    """
    settings = chosen_settings()
    where = settings.journal.cadf
    if not where:
        raise ConfigurationError("[journal] cadf names no file and no logger: there is nowhere to write events to.")
    if not (cursor_file or _is_file(where)):
        raise ConfigurationError("Events go to a logger: set --cursor-file to store the position.")
    configure_logging(settings)
    place = Path(cursor_file or f"{where}.cursor")
    with (
        readable(settings, with_journal=True) as database,
        _remembered(place) as bookmark,
        noted_interrupts() as interrupts,
    ):
        sink = _file_sink(Path(where)) if _is_file(where) else _logger_sink(logging.getLogger(where))
        for is_all in _written(database, bookmark, sink, settings.planner.names):
            if interrupts.has_come or (is_all and once):
                return
            if is_all:
                interrupts.wait(LOOK_EVERY_S)


def _is_file(where: str) -> bool:
    return where.startswith("/")


def _file_sink(path: Path) -> Sink:
    def write(lines: list[bytes]) -> None:
        # Reopened each time, so that logrotate may move the file away.
        with _writing(path), path.open("ab") as file:
            file.write(b"".join(line + b"\n" for line in lines))
            _to_disk(file)

    return write


def _logger_sink(logger: logging.Logger) -> Sink:
    def write(lines: list[bytes]) -> None:
        for line in lines:
            logger.info("%s", line.decode())

    return write


def _written(database: Database, bookmark: "_Bookmark", sink: Sink, names: OwnerNames) -> Iterator[bool]:
    """Write in portions, and yield after each whether it was the last one available."""
    cursor = bookmark.cursor
    while True:
        try:
            entries, reached = read_feed(database, cursor, limit=PORTION)
        except Gone:
            LOG.warning(
                "The journal no longer has the next rows: events may be missing. Continuing from its oldest row."
            )
            cursor = BEGINNING
            continue
        except Unavailable as error:
            LOG.warning("%s", error.message)
            yield True
            continue
        events = [event for entry in entries if (event := cadf_event(entry, names)) is not None]
        if events:
            sink([orjson.dumps(event) for event in events])
        if reached != cursor:
            cursor = reached
            bookmark.remember(cursor)
        yield len(entries) < PORTION


class _Bookmark:
    """A file that stores a cursor and is replaced atomically."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def cursor(self) -> Cursor:
        """The position up to which events were written."""
        text = self._path.read_text().strip() if self._path.exists() else "0"
        try:
            return cursor_from(text)
        except Invalid as error:
            raise ConfigurationError(
                f"{self._path} holds no position; remove it to begin with the oldest row."
            ) from error

    def remember(self, cursor: Cursor) -> None:
        """Store the position up to which events were written."""
        new = self._path.with_name(self._path.name + ".new")
        with _writing(self._path):
            with new.open("wb") as file:
                file.write(cursor.text.encode() + b"\n")
                _to_disk(file)
            new.replace(self._path)


@contextlib.contextmanager
def _remembered(path: Path) -> Iterator[_Bookmark]:
    """Yield the bookmark, held by one process at a time.

    Raises:
        ConfigurationError: the file cannot be written, or another process holds it.
    """
    locked = path.with_name(path.name + ".lock")
    with _writing(locked):
        lock = locked.open("w")
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ConfigurationError(f"Another process writes events already, and holds {locked}.") from error
        yield _Bookmark(path)


@contextlib.contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Report in one sentence that a file cannot be written.

    Raises:
        ConfigurationError: the directory is missing, the disk is full, or the like.
    """
    try:
        yield
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be written: {error.strerror}.") from error


def _to_disk(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())


def cadf_event(entry: Entry, names: OwnerNames = NOBODY) -> dict[str, Any] | None:
    """Return a row's event, or None if it has none.

    The same row always yields the same event, including its id; only the names of users and projects may change.
    """
    if entry.kind in _UNTOLD:
        return None
    return {
        "typeURI": EVENT_TYPE,
        "eventType": "activity",
        "id": str(uuid5(NAMESPACE_URL, f"placement:journal:{entry.id}:{entry.time.isoformat()}")),
        "eventTime": entry.time.isoformat(timespec="microseconds") + "+00:00",
        "action": _ACTIONS[entry.action],
        "outcome": "success",
        "initiator": _initiator(entry, names),
        "target": _target(entry),
        "observer": {"typeURI": SERVICE, "id": "placement"},
        "attachments": [{"name": "journal", "contentType": "application/json", "content": entry_json(entry)}],
    }


def _initiator(entry: Entry, names: OwnerNames) -> dict[str, str]:
    """Return the initiator; it is unknown if the change did not come from a request to this server."""
    if entry.request_id is None:
        return {"typeURI": UNKNOWN, "id": UNKNOWN}
    user = entry.by_user or UNKNOWN
    initiator = {"typeURI": USER, "id": user, "user_id": user, "request_id": entry.request_id}
    initiator |= {"name": names.users[user]} if user in names.users else {}
    project = entry.by_project
    initiator |= {"project_id": project} if project else {}
    return initiator | {"project_name": names.projects[project]} if project and project in names.projects else initiator


def _target(entry: Entry) -> dict[str, str]:
    of_consumer = entry.kind in _OF_CONSUMERS
    uuid = entry.consumer_uuid if of_consumer else entry.provider_uuid
    name = entry.resource_class or entry.name
    target = {"typeURI": f"{SERVICE}/{entry.kind}", "id": uuid or UNKNOWN}
    return target | {"name": name} if name else target
