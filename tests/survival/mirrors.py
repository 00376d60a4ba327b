"""Clients that mirror the cloud through the journal while it changes, whatever happens to servers and databases."""

import time
from collections.abc import Callable, Sequence
from itertools import cycle
from typing import Any

from tests.example_scripts import example
from tests.http_calls import TIMEOUT_S
from tests.survival.load import PAUSE_AFTER_ERROR_S, AtWork, Broken, send

EXAMPLE = example("mirror")


class _MirrorClient:
    """A mirror and its position in the journal; it tries the servers in turn until one answers."""

    def __init__(self, urls: Sequence[str]) -> None:
        self._urls = cycle(urls)
        self._url = next(self._urls)
        self.mirror, self.cursor = EXAMPLE.snapshot(self.get)

    def run(self, until: Callable[[], bool]) -> None:
        while not until():
            self.follow()

    def follow(self) -> None:
        self.cursor = EXAMPLE.follow(self.get, self.mirror, self.cursor)

    def get(self, path: str) -> tuple[Any, Any]:
        deadline = time.monotonic() + 2 * TIMEOUT_S
        while time.monotonic() < deadline:
            try:
                answer = send(self._url, "GET", path)
            except Broken:
                self._url = next(self._urls)
                time.sleep(PAUSE_AFTER_ERROR_S)
                continue
            if answer.status == 200:
                return answer.document, answer.headers
            assert answer.status == 503, answer
            time.sleep(PAUSE_AFTER_ERROR_S)
        raise AssertionError("no server answers")


class Mirrors(AtWork):
    """One mirror that starts at each server."""

    def __init__(self, urls: Sequence[str]) -> None:
        self._clients = [_MirrorClient([*urls[number:], *urls[:number]]) for number in range(len(urls))]
        super().__init__([client.run for client in self._clients], longest_s=TIMEOUT_S)

    def check(self) -> None:
        """When nobody writes any more: check that each mirror equals what the servers show."""
        for client in self._clients:
            client.follow()
            fresh, _ = EXAMPLE.snapshot(client.get)
            assert client.mirror == fresh
