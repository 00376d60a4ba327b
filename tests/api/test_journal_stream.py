"""GET /planner/v1/journal as server-sent events: in order, exactly once, and without occupying a server thread."""

import contextlib
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from flask import Flask
from werkzeug.test import TestResponse

from placement.api.connections import Connection
from placement.api.planner.journal_feed import Following, Listeners, Pace, TooManyListeners
from placement.services.journal import newest, prune
from placement.settings import JournalSettings
from placement.store.journal.reading import EntryFilter
from tests.api.conftest import Api, serving
from tests.api.test_journal import PATH, claim, entries
from tests.claims import make_provider
from tests.event_stream import TIMEOUT_S, Stream

EVENTS = {"accept": "text/event-stream"}


def pair() -> tuple[socket.socket, socket.socket]:
    client, server = socket.socketpair()
    client.settimeout(TIMEOUT_S)
    return client, server


def listen(api: Api, query: str = "", **headers: str) -> Stream:
    """Follow the journal over a connection that the server hands over, as gunicorn does."""
    client, server = pair()
    sent = EVENTS | {name.replace("_", "-"): value for name, value in headers.items()}
    answer = api.get(PATH + query, headers=sent, environ_overrides={"gunicorn.socket": server})
    server.close()
    assert (answer.status_code, answer.data) == (200, b""), answer.text
    return Stream(client)


def told(stream: Stream, count: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    while len(rows) < count:
        rows += stream.next_event().data["entries"]
    return rows


def test_what_is_committed_is_told_in_order_and_once(api: Api) -> None:
    provider = make_provider(api, VCPU=8)
    with listen(api) as stream, listen(api, "?limit=2") as other:
        assert stream.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert stream.headers["x-accel-buffering"] == "no"
        begin = stream.next_block()
        assert begin is not None
        for _ in range(3):
            claim(api, provider)
        expected = entries(api, f"?after={begin.id}")
        assert len(expected) == 9
        assert told(stream, 9) == told(other, 9) == expected


def test_who_comes_again_misses_nothing_and_hears_nothing_twice(api: Api) -> None:
    provider = make_provider(api, VCPU=8)
    cursor, heard = "0", list[dict[str, Any]]()
    for _ in range(4):
        claim(api, provider)
        with listen(api, "?after=now&limit=4", last_event_id=cursor) as stream:
            block = stream.next_event()
            cursor, heard = block.id, heard + block.data["entries"]
    with listen(api, f"?after={cursor}") as stream:
        heard += told(stream, len(entries(api, "?after=0&limit=1000")) - len(heard))
    assert heard == entries(api, "?after=0&limit=1000")


def test_a_reader_hears_what_is_about_the_own_project(api: Api) -> None:
    reader = {"x-auth-token": "somebody:mine", "x-roles": "reader", "x-project-id": "mine"}
    provider = make_provider(api, VCPU=8)
    with listen(api, **reader) as stream:
        claim(api, provider, project="yours")
        own = claim(api, provider, project="mine")
        assert {row["consumer_uuid"] for row in told(stream, 2)} == {own}
    refused = api.get(f"{PATH}?project=yours", headers=EVENTS | reader)
    assert refused.status_code == 403


@pytest.fixture
def small(database_url: str) -> Iterator[Api]:
    """A server that lets two clients follow its journal."""
    with serving(database_url, journal=JournalSettings(listeners=2)) as served:
        yield served


def test_their_number_is_bounded_and_who_hangs_up_makes_room(small: Api) -> None:
    def refused() -> TestResponse:
        client, server = pair()
        with client, server:
            return small.get(PATH, headers=EVENTS, environ_overrides={"gunicorn.socket": server})

    with listen(small), listen(small) as second:
        answer = refused()
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        assert "listeners" in answer.get_json()["errors"][0]["detail"]
        second.close()
        until(lambda: refused().status_code == 200)


def until(is_so: Callable[[], bool]) -> None:
    """Wait for something that another thread is about to do."""
    deadline = time.monotonic() + TIMEOUT_S
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0)


def test_a_refusal_is_an_answer_like_any_other_and_keeps_no_place(app: Flask, api: Api) -> None:
    claim(api, make_provider(api, VCPU=8))
    stale = api.get(f"{PATH}?after=now").get_json()["cursor"]
    claim(api, make_provider(api, VCPU=8))
    api.get(f"{PATH}?after=now")
    prune(app.extensions["placement"].database, keep_days=0)
    for cursor, status in (("x!", 400), (stale, 410)):
        client, server = pair()
        with client, server:
            lent = {"gunicorn.socket": server}
            answer = api.get(PATH, headers=EVENTS | {"last-event-id": cursor}, environ_overrides=lent)
        assert (answer.status_code, answer.mimetype) == (status, "application/json")
    assert len(app.extensions["placement"].listeners) == 0


def test_where_a_server_lends_no_connection_the_client_comes_again(api: Api) -> None:
    provider = make_provider(api, VCPU=8)
    answer = api.get(f"{PATH}?after=0", headers=EVENTS)
    assert answer.status_code == 200
    assert answer.data.startswith(b"retry: 2000\nid: ")
    cursor = answer.text.rpartition("\nid: ")[2].partition("\n")[0]
    assert b"data:" not in api.get(PATH, headers=EVENTS | {"last-event-id": cursor}).data
    claim(api, provider)
    again = api.get(PATH, headers=EVENTS | {"last-event-id": cursor})
    assert again.text.count("\ndata: ") == 1


@pytest.mark.parametrize(
    ("accept", "answered"),
    [
        ("*/*", "application/json"),
        ("application/json, text/event-stream", "application/json"),
        ("application/json;q=0.5, text/event-stream", "text/event-stream"),
    ],
)
def test_json_is_told_where_the_client_does_not_prefer_events(api: Api, accept: str, answered: str) -> None:
    assert api.get(PATH, headers={"accept": accept}).mimetype == answered
    assert api.get(PATH, headers={"accept": "text/csv"}).status_code == 406
    assert api.get(f"{PATH}/at?time=2026", headers=EVENTS).status_code == 406


@contextlib.contextmanager
def following(app: Flask, pace: Pace, *, most: int = 9) -> Iterator[tuple[Listeners, Callable[[], socket.socket]]]:
    """Yield listeners with their own pace, and a factory of clients for them."""
    database = app.extensions["placement"].database
    listeners = Listeners(database, most, pace=pace)
    with contextlib.ExitStack() as open_:

        def connected() -> socket.socket:
            listener = listeners.admit(Following(EntryFilter(), 1000, newest(database)))
            client, server = pair()
            with server:
                listener.keep(Connection(server.fileno()))
            return open_.enter_context(client)

        yield listeners, connected
    until(lambda: len(listeners) == 0)


def test_a_silent_stream_has_a_heart_that_beats(app: Flask, api: Api) -> None:
    def heartbeat() -> bytes:
        return b"id: %s\n" % newest(app.extensions["placement"].database).text.encode()

    with following(app, Pace(look_s=0.01, heartbeat_s=0.0)) as (_, connected), connected().makefile("rb") as text:
        assert [text.readline() for _ in range(3)] == [b":\n", heartbeat(), b"\n"]
        make_provider(api)
        until(lambda: text.readline() == heartbeat())


def test_a_stream_ends_after_a_while_so_that_its_client_is_authorized_anew(app: Flask) -> None:
    with following(app, Pace(look_s=0.01, longest_s=0.0)) as (_, connected):
        assert connected().recv(1) == b""


def test_who_takes_nothing_is_cut_off_and_keeps_nobody_waiting(app: Flask, api: Api) -> None:
    with following(app, Pace(look_s=0.001, heartbeat_s=0.0, stalled_s=0.05)) as (listeners, connected):
        _stuck, well = connected(), connected().makefile("rb")
        provider = make_provider(api, VCPU=8)
        until(lambda: provider.encode() in well.readline())
        until(lambda: bool(well.readline()) and len(listeners) == 1)


def test_there_is_no_place_beyond_the_last(app: Flask) -> None:
    with following(app, Pace(), most=1) as (_, connected):
        connected()
        with pytest.raises(TooManyListeners):
            connected()
