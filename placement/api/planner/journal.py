"""GET /planner/v1/journal: who changed what and when, as an audit trail and as a feed, polled or streamed."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from flask import Response

from placement.api.call import JSON, Call
from placement.api.connections import EVENT_STREAM, KEEPER, connection_number
from placement.api.fields import text
from placement.api.planner.journal_feed import Following, entry_json, moment_of, next_event, opening, time_text
from placement.api.query import ANY, CANONICAL_UUID
from placement.api.routing import planner_route
from placement.errors import Invalid, NotFound
from placement.services import journal as service
from placement.store.journal.order import Cursor, cursor_from
from placement.store.journal.reading import Entry, EntryFilter

RULE = "placement:planner:journal"
USUAL_LIMIT = 100
MAX_LIMIT = 1000
CLOCKS_DIFFER_BY = timedelta(seconds=1)

_TEXT = text(shortest=1, longest=255)
QUERY = {
    "consumer": _TEXT,
    "provider": CANONICAL_UUID,
    "project": _TEXT,
    "user": _TEXT,
    "since": ANY,
    "until": ANY,
    "limit": text(pattern="[1-9][0-9]{0,2}|1000"),
    "before": text(pattern="[0-9]{1,18}"),
    "after": ANY,
    "names": text(pattern="true"),
}


AT_QUERY = {"provider": CANONICAL_UUID, "time": ANY}


def show_provider_at(call: Call) -> Response:
    """Return what a provider had at a point in time, and who held it."""
    call.authorize(RULE, project_id=None)
    _check_there_is_one(call)
    call.query.check(AT_QUERY, required=("provider", "time"))
    provider, instant = call.query.last("provider") or "", moment_of(call.query.last("time") or "")
    past = service.read_history(call.database, provider, instant)
    return call.json(
        {
            "provider_uuid": provider,
            "time": time_text(instant),
            "inventories": past.inventories,
            "usages": past.usages,
            "holders": past.holders,
            "traits": sorted(past.traits),
            "aggregates": sorted(past.aggregates),
        }
    )


def keeps_journal(call: Call) -> bool:
    """Tell whether a journal is enabled and the database keeps one."""
    return call.server.settings.journal.enabled and call.database.keeps_journal


def _check_there_is_one(call: Call) -> None:
    if not keeps_journal(call):
        raise NotFound("There is no journal: [journal] enabled is off, or its triggers are missing.")


def show_journal(call: Call) -> Response:
    """Return the newest rows, or the rows after a cursor."""
    _check_there_is_one(call)
    project = _project(call)
    call.query.check(QUERY)
    filters = _filters(call, project)
    limit = int(call.query.last("limit") or USUAL_LIMIT)
    after = call.query.last("after")
    if after is not None and call.query.last("before") is not None:
        raise Invalid("before (older entries) and after (newer entries) exclude each other.")
    if call.request.accept_mimetypes.best_match([JSON, EVENT_STREAM]) == EVENT_STREAM:
        reached = call.request.headers.get("last-event-id") or after or "now"
        return _stream(call, Following(filters, limit, _cursor(call, reached)))
    return _trail(call, filters, limit) if after is None else _feed(call, filters, limit, after)


def follow_changes(call: Call) -> Response:
    """Send an event whenever anything has changed after the time in ``since``, without the rows."""
    _check_there_is_one(call)
    call.authorize(RULE, project_id=None)
    reached = call.request.headers.get("last-event-id")
    following = Following(EntryFilter(), MAX_LIMIT, _cursor(call, reached or "now"), sends_rows=False)
    since = None if reached else _instant(call.query.last("since"))
    newest = service.read_trail(call.database, EntryFilter(), limit=1) if since else []
    is_late = since is not None and any(entry.time >= since - CLOCKS_DIFFER_BY for entry in newest)
    return _stream(call, following, first=b"data: {}\n\n" if is_late else b"")


def _project(call: Call) -> str | None:
    """Return the project to filter by: the caller's own if it may not see all."""
    project = call.query.last("project")
    if project is None and not call.is_allowed(RULE, project_id=None):
        project = call.identity.project_id
    call.authorize(RULE, project_id=project)
    return project


def _filters(call: Call, project: str | None) -> EntryFilter:
    query = call.query
    return EntryFilter(
        consumer=query.last("consumer"),
        providers=tuple(query.every("provider"))[-1:],
        project=project,
        user=query.last("user"),
        since=_instant(query.last("since")),
        until=_instant(query.last("until")),
    )


def _instant(text: str | None) -> datetime | None:
    return None if text is None else moment_of(text)


def _trail(call: Call, filters: EntryFilter, limit: int) -> Response:
    before = call.query.last("before")
    entries = service.read_trail(call.database, filters, limit=limit, before=None if before is None else int(before))
    document = _document(call, entries)
    if len(entries) == limit:
        document["before"] = entries[-1].id
    return call.json(document)


def _feed(call: Call, filters: EntryFilter, limit: int, after: str) -> Response:
    place = _cursor(call, after)
    if after == "now":
        return call.json({"entries": [], "cursor": place.text})
    entries, reached = service.read_feed(call.database, place, filters, limit=limit)
    return call.json(_document(call, entries) | {"cursor": reached.text})


def _document(call: Call, entries: Sequence[Entry]) -> dict[str, object]:
    document: dict[str, object] = {"entries": [entry_json(entry) for entry in entries]}
    if call.query.last("names"):
        document["provider_names"] = service.provider_names(call.database, entries)
    return document


def _cursor(call: Call, text: str) -> Cursor:
    return service.newest(call.database) if text == "now" else cursor_from(text)


def _stream(call: Call, following: Following, *, first: bytes = b"") -> Response:
    """Answer with the first events, and let the rest follow without occupying this thread.

    If the server does not expose its connections, the answer ends there. The client reconnects by itself after the
    delay in ``retry``.
    """
    lends = connection_number(call.request.environ) is not None
    listener = call.server.listeners.admit(following) if lends else None
    try:
        text, reached = next_event(call.database, following)
    except BaseException:
        if listener is not None:
            listener.withdraw()
        raise
    if listener is not None:
        listener.following = reached
        call.request.environ[KEEPER] = listener
    response = Response(opening(following) + first + text, content_type=f"{EVENT_STREAM}; charset=utf-8")
    response.headers["cache-control"] = "no-store"
    response.headers["x-accel-buffering"] = "no"
    return response


ROUTES = (
    planner_route("GET", "/journal", show_journal, view_rules=(RULE,), also_answers=EVENT_STREAM, query=QUERY),
    planner_route("GET", "/journal/at", show_provider_at, view_rules=(RULE,), query=AT_QUERY),
)
