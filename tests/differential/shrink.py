"""Reduces a mismatch: drops requests, then parameters and keys, while the servers still differ in the same way."""

import copy
import dataclasses
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tests.differential.requests import NO_BODY, Request
from tests.differential.rounds import Mismatch, Tally, play
from tests.differential.sides import Pair

History = list[Request]


def shrunk(pair: Pair, requests: Sequence[Request], mismatch: Mismatch, *, seconds: float) -> Mismatch:
    """Return the smallest mismatch of the same kind that is found within the time; the requests are a whole round."""
    deadline = time.monotonic() + seconds
    best = mismatch

    def still_differs(history: History) -> bool:
        nonlocal best
        found = play(pair, history, Tally()) if time.monotonic() < deadline else None
        if found is None or found.kind != mismatch.kind or len(found.sent) != len(history):
            return False
        best = found
        return True

    history = list(requests[: len(mismatch.sent)])
    writes = [request for request in history[:-1] if request.is_write]
    if still_differs([*writes, history[-1]]):
        history = [*writes, history[-1]]
    history = _fewer_requests(history, still_differs)
    for index in range(len(history) - 1, -1, -1):
        history = _smaller_request(history, index, still_differs)
    _fewer_requests(history, still_differs)
    return best


def _fewer_requests(history: History, still_differs: Callable[[History], bool]) -> History:
    """Drop ever shorter runs of requests, but never the last request."""
    size = max(1, (len(history) - 1) // 2)
    while True:
        start = 0
        while start < len(history) - 1:
            attempt = history[:start] + history[min(start + size, len(history) - 1) :]
            if still_differs(attempt):
                history = attempt
            else:
                start += size
        if size == 1:
            return history
        size //= 2


def _smaller_request(history: History, index: int, still_differs: Callable[[History], bool]) -> History:
    """Remove parts of one request as long as possible."""
    while True:
        for attempt in _with_less(history[index]):
            changed = [*history[:index], attempt, *history[index + 1 :]]
            if still_differs(changed):
                history = changed
                break
        else:
            return history


def _with_less(request: Request) -> Iterator[Request]:
    """Yield the request without one parameter, without one item of a parameter's list, without one key of its body."""
    pairs = request.query
    for i, (key, value) in enumerate(pairs):
        yield dataclasses.replace(request, query=pairs[:i] + pairs[i + 1 :])
        items = value.split(",")
        for j in range(len(items) if len(items) > 1 else 0):
            less = ",".join(items[:j] + items[j + 1 :])
            yield dataclasses.replace(request, query=(*pairs[:i], (key, less), *pairs[i + 1 :]))
    if request.body is not NO_BODY:
        for body in _documents_with_less(request.body):
            yield dataclasses.replace(request, body=body)


def _documents_with_less(document: Any) -> Iterator[Any]:
    for path in _paths(document):
        smaller = copy.deepcopy(document)
        container = smaller
        for step in path[:-1]:
            container = container[step]
        del container[path[-1]]
        yield smaller


def _paths(document: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every key and item of a document, the outer ones first."""
    keys: list[Any] = list(document) if isinstance(document, dict) else []
    if isinstance(document, list):
        keys = list(range(len(document)))
    for key in keys:
        yield (*before, key)
    for key in keys:
        yield from _paths(document[key], (*before, key))
