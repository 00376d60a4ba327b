"""One request as operators see it: what was asked, by whom, what came of it and what it cost.

``Observed`` is the outermost layer of the application, so that what the layers below refuse is seen as well.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Protocol

from placement.store.connection.statements import statements_so_far

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

    from placement.logs import LoggedRequest

KEY = "placement.record"
"""Where the environment of a request holds its record; headers of clients cannot reach this key."""

NO_ROUTE = "none"


class RequestRecord:
    """What is known of a request; the fields fill up while it is served.

    ``route`` is the path with its variables as placeholders, or NO_ROUTE. ``duration_s`` and ``statements`` hold from
    the end of the answer's body on.
    """

    __slots__ = ("began", "duration_s", "environ", "length", "logged", "route", "statements", "status", "version")

    def __init__(self, environ: "WSGIEnvironment") -> None:
        self.environ = environ
        self.began = time.perf_counter()
        self.status = 0
        self.length = "-"
        self.route = NO_ROUTE
        self.version: str | None = None
        self.logged: LoggedRequest | None = None
        self.statements = statements_so_far()
        self.duration_s = 0.0

    def end(self) -> None:
        """Take the time and the statements that the request took."""
        self.duration_s = time.perf_counter() - self.began
        self.statements = statements_so_far() - self.statements


class Observer(Protocol):
    """Something that wants to know of every request."""

    def __call__(self, record: RequestRecord) -> None:
        """Take note of a request that has been answered."""


class Observed:
    """A WSGI application whose requests are told to observers when their answers are sent."""

    def __init__(self, application: "WSGIApplication", observers: Iterable[Observer]) -> None:
        self._application = application
        self._observers = tuple(observers)

    def __call__(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> "Iterable[bytes]":
        """Serve one request."""
        record = environ[KEY] = RequestRecord(environ)

        def begin(status: str, headers: list[tuple[str, str]], *rest: Any) -> Callable[[bytes], object]:
            record.status = int(status[:3])
            record.length = _length(headers)
            return start_response(status, headers, *rest)

        try:
            body = self._application(environ, begin)
        except Exception:
            # What the server in front makes of it is a 500.
            record.status = 500
            self._tell(record)
            raise
        return _WatchedBody(body, lambda: self._tell(record))

    def _tell(self, record: RequestRecord) -> None:
        record.end()
        for observer in self._observers:
            observer(record)


class _WatchedBody:
    """The body of an answer, with something to do when it has been sent."""

    __slots__ = ("_body", "_done")

    def __init__(self, body: "Iterable[bytes]", done: Callable[[], None]) -> None:
        self._body = body
        self._done = done

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._body)

    def close(self) -> None:
        try:
            if close := getattr(self._body, "close", None):
                close()
        finally:
            self._done()


def _length(headers: list[tuple[str, str]]) -> str:
    for name, value in headers:
        if name.lower() == "content-length":
            return value
    return "-"
