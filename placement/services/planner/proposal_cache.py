"""What hosts give to claimed requests, cached from claim to claim by everything that the search sees of a host.

That is its form (``candidates.host_sketches``), including what is free and used. The same form gives the same result in
any snapshot, so a cached entry can never be stale.
"""

import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import NamedTuple

from placement.candidates.canonical import CanonicalForm
from placement.candidates.compose.proposals import Proposals
from placement.candidates.host_sketches import HostSketch
from placement.domain.places import Levels
from placement.domain.planner_request import PlannerRequest

MAX_PROVIDERS = 30_000
"""The limit on providers of all hosts with cached proposals, about twenty megabytes.

Beyond it the least recently used entries are evicted.
"""

MAX_REQUESTS = 64
"""How many recent requests are remembered."""


class AskedFor(NamedTuple):
    """Everything but the host's form that decides what it gives: equal keys get the same."""

    request: PlannerRequest
    levels: Levels
    locks: Mapping[str, str]


class ProposalCache:
    """The proposals of hosts for requests, shared by all threads.

    Args:
        most_providers: the limit on providers of all cached hosts.
        most_requests: how many requests are remembered.
    """

    def __init__(self, *, most_providers: int = MAX_PROVIDERS, most_requests: int = MAX_REQUESTS) -> None:
        self._most_providers = most_providers
        self._most_requests = most_requests
        self._lock = threading.Lock()
        self._requests: list[tuple[AskedFor, int]] = []
        """Each with its number, the most recently used first."""
        self._last_number = 0
        self._found: OrderedDict[tuple[int, CanonicalForm], tuple[HostSketch, Proposals]] = OrderedDict()
        self._providers = 0

    def of(self, asked: AskedFor) -> "ProposalsByForm":
        """Return the part of the cache for a request."""
        with self._lock:
            found = next((one for one in self._requests if one[0] == asked), None)
            if found is None:
                self._last_number += 1
                found = asked, self._last_number
            else:
                self._requests.remove(found)
            self._requests = [found, *self._requests[: self._most_requests - 1]]
        return ProposalsByForm(self, found[1])

    def get(self, number: int, form: CanonicalForm) -> tuple[HostSketch, Proposals] | None:
        """Return what a host of a form gives to a request, given by its number, and the host that gave it."""
        with self._lock:
            found = self._found.get((number, form))
            if found is not None:
                self._found.move_to_end((number, form))
        return found

    def remember(self, number: int, host: HostSketch, found: Proposals) -> None:
        """Cache what a host gives to a request, given by its number."""
        with self._lock:
            if (number, host.form) not in self._found:
                self._found[number, host.form] = host, found
                self._providers += len(host.providers)
            while self._providers > self._most_providers:
                _key, (oldest, _proposals) = self._found.popitem(last=False)
                self._providers -= len(oldest.providers)


class ProposalsByForm:
    """The part of the cache for one request."""

    def __init__(self, cache: ProposalCache, number: int) -> None:
        self._cache = cache
        self._number = number

    def get(self, form: CanonicalForm) -> tuple[HostSketch, Proposals] | None:
        """Return what a host of a form gives, and the host that gave it; None if unknown."""
        return self._cache.get(self._number, form)

    def remember(self, host: HostSketch, found: Proposals) -> None:
        """Cache what a host gives, unless a longer search might find more."""
        if found.complete:
            self._cache.remember(self._number, host, found)
