"""What every way of starting a server must pass with clients that follow the journal."""

import contextlib
from collections.abc import Callable

from tests.claims import new_uuid
from tests.concurrency.together import together
from tests.event_stream import Stream, listen
from tests.http_calls import HttpCalls

LISTENERS = 6
REQUESTS = 12


def follow(url: str) -> list[Stream]:
    """Let more clients follow than the server has threads, and check that it still serves requests.

    The streams are returned open.
    """
    with contextlib.ExitStack() as open_:
        streams = [open_.enter_context(listen(url)) for _ in range(LISTENERS)]
        begins = [stream.next_block() for stream in streams]
        assert all(begins)
        call, uuids = HttpCalls(url), [new_uuid() for _ in range(REQUESTS)]
        assert together([_maker(call, uuid) for uuid in uuids]) == [200] * REQUESTS
        for stream in streams:
            assert sorted(_made(stream)) == sorted(uuids)
        _comes_again(url, streams[0])
        open_.pop_all()
        return streams


def _maker(call: HttpCalls, uuid: str) -> Callable[[], int]:
    return lambda: call.ask("POST", "/resource_providers", body={"name": uuid, "uuid": uuid}).status


def _made(stream: Stream, count: int = REQUESTS) -> list[str]:
    made: list[str] = []
    while len(made) < count:
        rows = stream.next_event().data["entries"]
        made += [row["provider_uuid"] for row in rows if (row["kind"], row["action"]) == ("provider", "created")]
    return made


def _comes_again(url: str, stream: Stream) -> None:
    """Check that a client that disconnects and returns gets what happened meanwhile, and nothing else."""
    uuid = new_uuid()
    _maker(HttpCalls(url), uuid)()
    event = stream.next_event()
    stream.close()
    later = new_uuid()
    _maker(HttpCalls(url), later)()
    with listen(url, Last_Event_ID=event.id) as again:
        assert _made(again, 1) == [later]


def end(streams: list[Stream]) -> None:
    """Read all streams to their end, after the server has stopped; the first one was disconnected before."""
    for stream in streams[1:]:
        for _last in stream.blocks():
            pass
        stream.close()
