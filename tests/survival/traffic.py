"""Clients that read, claim and release as fast as they are answered, and the memory of the server's workers."""

import contextlib
import http.client
import json
import random
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.claims import entry, new_uuid
from tests.servers import Served
from tests.survival.at_work import AtWork
from tests.survival.load import VERSION

MAX_WAIT_S = 60
"""How long nova waits for an answer."""
PROPER = frozenset({200, 204, 404, 409, 503})
"""Done, nothing to release, somebody else was faster, try again."""
QUERIES = (
    "resources=VCPU:1",
    "resources=VCPU:2,MEMORY_MB:512",
    "resources1=VCPU:1&resources2=VCPU:1&group_policy=none",
)
HEADERS = {"x-auth-token": "admin", "openstack-api-version": VERSION, "content-type": "application/json"}


class _Client:
    """A client with one connection, which claims a candidate it has just received, and releases it later."""

    def __init__(self, url: str, providers: Sequence[str], seed: int) -> None:
        self.statuses: Counter[int] = Counter()
        self.slowest_s = 0.0
        self.answered = 0
        self._connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=MAX_WAIT_S)
        self._choice = random.Random(seed)
        self._providers = providers
        self._consumer = new_uuid()
        self._offered: Mapping[str, Any] = {}

    def step(self) -> None:
        """Send one request."""
        kind = self._choice.random()
        if kind < 0.5:
            query = f"/allocation_candidates?{self._choice.choice(QUERIES)}&limit=10"
            found = self._send("GET", query)
            if found and found["allocation_requests"]:
                self._offered = self._choice.choice(found["allocation_requests"])["allocations"]
        elif kind < 0.65 and self._offered:
            shares = {uuid: share["resources"] for uuid, share in self._offered.items()}
            self._send("PUT", f"/allocations/{self._consumer}", entry(shares))
        elif kind < 0.8:
            self._send("DELETE", f"/allocations/{self._consumer}")
        elif kind < 0.9:
            self._send("GET", f"/allocations/{self._consumer}")
        elif kind < 0.95:
            self._send("GET", f"/resource_providers/{self._choice.choice(self._providers)}/usages")
        else:
            self._send("GET", "/resource_providers?resources=VCPU:1")

    def run(self, is_over: Callable[[], bool]) -> None:
        """Send requests until it is over."""
        with contextlib.closing(self._connection):
            while not is_over():
                self.step()

    def _send(self, method: str, path: str, body: object = None) -> Any:
        start = time.monotonic()
        self._connection.request(method, path, None if body is None else json.dumps(body), HEADERS)
        answer = self._connection.getresponse()
        content = answer.read()
        self.slowest_s = max(self.slowest_s, time.monotonic() - start)
        self.statuses[answer.status] += 1
        self.answered += 1
        assert answer.status in PROPER, f"{method} {path}: {answer.status} {content[:500]!r}"
        return json.loads(content) if answer.status == 200 else None


class Traffic(AtWork):
    """The given number of clients at work."""

    def __init__(self, url: str, providers: Sequence[str], *, clients: int) -> None:
        self._clients = [_Client(url, providers, seed) for seed in range(clients)]
        super().__init__([client.run for client in self._clients], longest_s=MAX_WAIT_S)

    @property
    def answered(self) -> int:
        """The number of requests answered so far."""
        return sum(client.answered for client in self._clients)

    @property
    def statuses(self) -> Counter[int]:
        """The number of answers by status."""
        return sum((client.statuses for client in self._clients), Counter())

    @property
    def slowest_s(self) -> float:
        """The time of the slowest answer."""
        return max(client.slowest_s for client in self._clients)

    def wait_for(self, count: int) -> None:
        """Wait until this many requests were answered."""
        before, since = -1, time.monotonic()
        while (answered := self.answered) < count and not self.has_failed:
            if answered > before:
                before, since = answered, time.monotonic()
            assert time.monotonic() - since < 2 * MAX_WAIT_S, f"no answer any more after {answered}"
            time.sleep(0.02)


def workers(served: Served) -> list[int]:
    """Return the process ids of a server's workers."""
    pid = served.process.pid
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def resident_mb(pid: int) -> float:
    """Return the resident memory of a process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    (kilobytes,) = [line.split()[1] for line in lines if line.startswith("VmRSS:")]
    return int(kilobytes) / 1024
