"""gunicorn's worker with threads, which get only requests that have arrived, and limits for what clients may take.

gthread's threads read from the client themselves and wait as long as it likes, so a few half-sent requests stop a
worker. Here the event loop collects requests, and whoever is late or too slow is disconnected. The event loop cannot
see through TLS: with gunicorn's own ``certfile`` the limits hold, but a thread does the waiting.
"""

import contextlib
import io
import logging
import os
import re
import selectors
import signal
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson
from gunicorn.workers.gthread import TConn, ThreadWorker

from placement.settings.values import MAX_BODY
from placement.telemetry.record import THREADS, ThreadUse

if TYPE_CHECKING:
    from types import FrameType
    from wsgiref.types import WSGIApplication, WSGIEnvironment

    from gunicorn.http import Request

LOG = logging.getLogger(__name__)

PIECE_BYTES = 256 * 1024
MAX_HEAD = 1024 * 1024
MAX_COLLECTED = 64 * 1024 * 1024
"""Bytes of unfinished requests that a worker holds; the oldest of them makes room."""
PROBE_THREADS = 4
"""While the database is silent, /readycheck takes a second (``services/health.py``)."""
LINGER_S = 2
"""How long a client may go on sending that was answered already, or be silent if the worker is stopping."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How long a client may take.

    Attributes:
        head_s: to send the head of a request, from the connection or the previous answer's next byte.
        body_s: to send the body.
        send_s: to take an answer, and ``slowest_bytes_per_s`` in each further second.
        slowest_bytes_per_s: the speed below which a client that takes a long answer is disconnected.
    """

    head_s: int = 10
    body_s: int = 30
    send_s: int = 20
    slowest_bytes_per_s: int = 64 * 1024


_PROBES = (b"", b"/", b"/healthcheck", b"/readycheck")
_RECEIVE_BYTES = 1024 * 1024
_HEAD_END = b"\r\n\r\n"
_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*([0-9]{1,18})[ \t]*\r\n", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding:", re.IGNORECASE)
_EXPECTS = re.compile(rb"\r\nexpect:[ \t]*100-continue[ \t]*\r\n", re.IGNORECASE)


def _refusal(status: int, title: str, detail: str) -> bytes:
    body = orjson.dumps({"errors": [{"status": status, "title": title, "detail": detail}]})
    head = f"HTTP/1.1 {status} {title}\r\nConnection: close\r\nContent-Type: application/json\r\n"
    return head.encode() + f"Content-Length: {len(body)}\r\n\r\n".encode() + body


_LATE = _refusal(408, "Request Timeout", "The request did not arrive in time.")
_TOO_LONG = _refusal(431, "Request Header Fields Too Large", f"The head of a request has at most {MAX_HEAD} bytes.")


class ClientConnection(TConn):
    """A connection, with as much of its next request as has arrived."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.collected = bytearray()
        self.since = self.deadline = 0.0
        self._limits = Limits()
        self.is_probe = self.is_late = False
        self._body = 0
        self._chunk = 0
        self._end: int | None = None

    def init(self) -> None:
        """Let gunicorn's parser read through ``recv``."""
        super().init()
        self._unreader.sock = self

    def recv(self, size: int) -> bytes:
        """Read for a thread; the request of a client that is late ends here, and so does its connection."""
        remaining_s = self.deadline - time.monotonic()
        try:
            if remaining_s > 0:
                self.sock.settimeout(remaining_s)
                return self.sock.recv(size)
        except TimeoutError:
            pass
        finally:
            self.sock.settimeout(self._limits.send_s)
        self.is_late = True
        self.sock.shutdown(socket.SHUT_RD)  # makes the event loop look at the connection when it is kept
        return b""

    def expect(self, limits: Limits) -> None:
        """Set the time by which a request that a thread will read has to be there."""
        self._limits = limits
        self.since = time.monotonic()
        self.deadline = self.since + limits.head_s + limits.body_s

    def begin(self, limits: Limits) -> None:
        """Start to collect a request; the previous one may have left its beginning."""
        self.expect(limits)
        self.deadline = self.since + limits.head_s
        self.init()
        self.sock.settimeout(0)
        self.collected = bytearray(self._unreader.buf.getvalue())
        self._body, self._end = 0, None

    def receive(self) -> bool:
        """Read what has arrived and tell whether a thread should go on: with a whole request, or a broken one."""
        try:
            received = self.sock.recv(_RECEIVE_BYTES)
        except BlockingIOError:
            return False
        except OSError:
            return True
        searched = max(0, len(self.collected) - len(_HEAD_END))
        self.collected += received
        return not received or self.is_complete(searched)

    def is_complete(self, searched: int = 0) -> bool:
        """Tell whether the request is complete, malformed, or longer than what is collected."""
        if not self._body and not self._find_body(searched):
            return False
        return len(self.collected) >= self._end if self._end is not None else self._has_all_chunks()

    @property
    def is_too_long(self) -> bool:
        """Whether the head is longer than any that is served."""
        return not self._body and len(self.collected) > MAX_HEAD

    def release(self, probes: frozenset[bytes]) -> None:
        """Hand the collected bytes to gunicorn's parser."""
        self.is_probe = bytes(self.collected[:256]).partition(b" HTTP/")[0] in probes
        self._unreader.buf = io.BytesIO(self.collected)
        self.collected = bytearray()

    def close(self, graceful: bool = False) -> None:  # noqa: FBT001, FBT002  (as gunicorn calls it)
        """Close the connection without waiting, as gunicorn would, for the client's half: nothing of it is unread."""
        if graceful:
            with contextlib.suppress(OSError):
                self.sock.shutdown(socket.SHUT_WR)
        self.sock.close()

    @property
    def _unreader(self) -> Any:
        return self.parser.unreader  # type: ignore[union-attr]

    def _find_body(self, searched: int) -> bool:
        end = self.collected.find(_HEAD_END, searched)
        if end < 0:
            return False
        head = bytes(self.collected[: end + len(_HEAD_END)])
        self._body = self._chunk = len(head)
        self.deadline = time.monotonic() + self._limits.body_s
        if _CHUNKED.search(head):
            self._expect_body(head)
        else:
            length = int(match[1]) if (match := _LENGTH.search(head)) else 0
            # The application refuses or reads what is too long to be held.
            self._end = self._body + (length if length <= MAX_BODY else 0)
            if len(self.collected) < self._end:
                self._expect_body(head)
        return True

    def _expect_body(self, head: bytes) -> None:
        if _EXPECTS.search(head):
            with contextlib.suppress(OSError):
                self.sock.send(b"HTTP/1.1 100 Continue\r\n\r\n")

    def _has_all_chunks(self) -> bool:
        while (line_end := self.collected.find(b"\r\n", self._chunk)) >= 0:
            try:
                size = int(self.collected[self._chunk : line_end].partition(b";")[0], 16)
            except ValueError:
                return True
            if size <= 0:
                return self.collected.find(_HEAD_END, self._chunk) >= 0
            self._chunk = line_end + 2 + size + 2
        return len(self.collected) > self._body + MAX_BODY


class HttpWorker(ThreadWorker):
    """A worker whose threads never wait for a request, and only so long for an answer to be taken."""

    limits = Limits()
    """A subclass may have others; gunicorn's setting ``worker_class`` names it."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._waiting: dict[ClientConnection, None] = {}  # oldest first
        # Silent connections leave room for new ones.
        self.max_keepalived = self.worker_connections // 2
        prefix = os.environ.get("SCRIPT_NAME", "").encode()
        self._probes = frozenset(b"GET " + prefix + path for path in _PROBES)

    def init_signals(self) -> None:
        """Ignore Ctrl-C, which the terminal sends to all processes: the first one tells the workers."""
        super().init_signals()
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    def handle_quit(self, sig: int, frame: "FrameType | None") -> None:  # noqa: ARG002
        """End at once. What was interrupted may hold any lock, so nothing here takes one."""
        os._exit(0)

    def get_thread_pool(self) -> ThreadPoolExecutor:
        """Return the threads, with more for probes, which no request can hold up."""
        return _Threads(self.cfg.threads)

    def load_wsgi(self) -> None:
        """Load the application; its answers have to be taken in time."""
        super().load_wsgi()
        threads = ThreadUse(self.cfg.threads, self.tpool.waiting)  # type: ignore[attr-defined]
        slow = SlowClients(self.cfg.threads)
        self.wsgi = taken_in_time(self.wsgi, self.limits, slow, threads=threads)  # type: ignore[assignment, arg-type]

    def accept(self, *arguments: Any) -> None:
        """Accept a connection; gunicorn 23 passes the listener's address before the listener."""
        try:
            accepted, address = arguments[-1].accept()
        except (BlockingIOError, ConnectionAbortedError):
            return
        self.nr_conns += 1
        self.enqueue_req(ClientConnection(self.cfg, accepted, address, arguments[-1].getsockname()))

    def enqueue_req(self, conn: TConn) -> None:
        """Wait for a connection's next request."""
        assert isinstance(conn, ClientConnection)
        if conn.is_late:
            self._close(conn)
        elif self.cfg.is_ssl:
            conn.expect(self.limits)
            super().enqueue_req(conn)
        else:
            self._collect(conn)

    def _collect(self, client: ClientConnection) -> None:
        client.begin(self.limits)
        if client.is_complete() or client.receive():
            self._serve(client)
            return
        self._waiting[client] = None
        self.poller.register(client.sock, selectors.EVENT_READ, lambda _socket: self._receive(client))
        if len(self._waiting) > self.worker_connections // 4:
            self._drop(next(iter(self._waiting)))

    def murder_keepalived(self, **options: Any) -> None:
        """Close connections that have waited too long; gunicorn calls this all the time."""
        super().murder_keepalived(**options)
        now = time.monotonic()
        for client in [*self._waiting]:
            lingers = not self.alive and not client.collected and now > client.since + LINGER_S
            if now > client.deadline or lingers:
                self._drop(client)

    def handle_request(self, req: "Request", conn: TConn) -> bool:
        """Serve a request."""
        assert isinstance(conn, ClientConnection)
        conn.sock.settimeout(self.limits.send_s)
        try:
            return super().handle_request(req, conn)
        except TimeoutError:
            LOG.info("A client was disconnected because it did not take its answer in time.")
            conn.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return False
        finally:
            conn.deadline = time.monotonic() + LINGER_S

    def _receive(self, client: ClientConnection) -> None:
        if client.receive():
            self._forget(client)
            self._serve(client)
        elif client.is_too_long:
            self._drop(client, _TOO_LONG)
        elif sum(len(client_waiting.collected) for client_waiting in self._waiting) > MAX_COLLECTED:
            self._drop(next(iter(self._waiting)))

    def _serve(self, client: ClientConnection) -> None:
        client.release(self._probes)
        super().enqueue_req(client)

    def _drop(self, client: ClientConnection, answer: bytes = _LATE) -> None:
        self._forget(client)
        if client.collected:
            LOG.info("A client was disconnected because its request did not arrive as it should.")
            with contextlib.suppress(OSError):
                client.sock.send(answer)
        self._close(client)

    def _close(self, client: ClientConnection) -> None:
        self.nr_conns -= 1
        client.close(graceful=True)

    def _forget(self, client: ClientConnection) -> None:
        del self._waiting[client]
        self.poller.unregister(client.sock)


class _Threads(ThreadPoolExecutor):
    def __init__(self, threads: int) -> None:
        super().__init__(threads)
        self._for_probes = ThreadPoolExecutor(PROBE_THREADS)

    def submit(self, fn: Callable[..., Any], /, *arguments: Any, **options: Any) -> "Future[Any]":
        """Run a call in a thread; its first argument is the connection."""
        if getattr(arguments[0], "is_probe", False):
            return self._for_probes.submit(fn, *arguments, **options)
        return super().submit(fn, *arguments, **options)

    def waiting(self) -> int:
        """Return how many requests wait for a thread."""
        return self._work_queue.qsize()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002
        """Shut down both."""
        self._for_probes.shutdown(wait, cancel_futures=cancel_futures)
        super().shutdown(wait, cancel_futures=cancel_futures)


class SlowClients:
    """The clients of a worker that take an answer for longer than ``Limits.send_s``: at most a quarter of its threads.

    Each holds a thread and, in memory, what is left of its answer. The slowest makes room.
    """

    def __init__(self, threads: int) -> None:
        self._allowed = max(1, threads // 4)
        self._speeds: dict[object, float] = {}
        self._lock = threading.Lock()

    def has_room(self, client: object, bytes_per_s: float) -> bool:
        """Note how fast a slow client is, and tell whether it may go on."""
        with self._lock:
            self._speeds[client] = bytes_per_s
            return len(self._speeds) <= self._allowed or bytes_per_s > min(self._speeds.values())

    def forget(self, client: object) -> None:
        """Forget a client, whether it was slow or not."""
        with self._lock:
            self._speeds.pop(client, None)


def taken_in_time(
    application: "WSGIApplication", limits: Limits, slow: SlowClients, *, threads: ThreadUse | None = None
) -> "WSGIApplication":
    """Return the application with answers that end with a TimeoutError if the client takes them too slowly.

    It is told about the ``threads`` that serve it; ``slow`` are the clients that take longer than most.
    """

    def limited(environ: "WSGIEnvironment", start_response: Any) -> Iterable[bytes]:
        environ[THREADS] = threads
        return _in_time(application(environ, start_response), limits, slow)

    return limited


def _in_time(body: Iterable[bytes], limits: Limits, slow: SlowClients) -> Iterator[bytes]:
    client, sending_s, sent = object(), 0.0, 0
    try:
        for portion in body:
            for at in range(0, len(portion), PIECE_BYTES):
                began = time.monotonic()
                yield portion[at : at + PIECE_BYTES]
                sending_s += time.monotonic() - began
                sent += min(PIECE_BYTES, len(portion) - at)
                over_s = sending_s - limits.send_s
                if over_s > sent / limits.slowest_bytes_per_s:
                    raise TimeoutError
                if over_s > 0 and not slow.has_room(client, sent / sending_s):
                    raise TimeoutError
    finally:
        slow.forget(client)
        if close := getattr(body, "close", None):
            close()
