"""A request of a round, and its form on the wire and in a shell."""

import dataclasses
import json
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

NO_BODY = object()


@dataclass(frozen=True, slots=True)
class Generation:
    """Stands for the current generation of a provider or consumer, plus an offset that makes it wrong."""

    kind: str  # "provider" or "consumer"
    uuid: str
    offset: int = 0


Lookup = Callable[[str, str], int | None]
"""(kind, uuid) -> generation, or None if there is no such object"""


@dataclass(frozen=True, slots=True)
class Request:
    """A request; its body is JSON that may contain Generations, or raw bytes."""

    method: str
    path: str
    version: str | None = None
    query: tuple[tuple[str, str], ...] = ()
    body: Any = NO_BODY
    headers: Mapping[str, str | None] = field(default_factory=dict)  # None removes a default

    @property
    def minor(self) -> int:
        """The microversion's second number; a malformed or missing one counts as 0."""
        number = (self.version or "1.0").removeprefix("1.")
        return int(number) if number.isascii() and number.isdecimal() else 0

    @property
    def is_candidates(self) -> bool:
        """Whether this is a request for allocation candidates."""
        return self.method == "GET" and self.path == "/allocation_candidates"

    @property
    def is_write(self) -> bool:
        """Whether this may change anything."""
        return self.method not in ("GET", "HEAD", "OPTIONS")

    def values(self, key: str) -> list[str]:
        """Return all values of one query parameter."""
        return [value for name, value in self.query if name == key]

    def without(self, *keys: str) -> "Request":
        """Return the request without some query parameters."""
        kept = tuple((name, value) for name, value in self.query if name not in keys)
        return dataclasses.replace(self, query=kept)

    def resolved(self, lookup: Lookup) -> "Request":
        """Return the request with its Generations replaced by numbers."""
        return dataclasses.replace(self, body=_resolved(self.body, lookup))

    def target(self) -> str:
        """Return the path and query as sent."""
        if not self.query:
            return self.path
        pairs = [f"{quote(key, safe='')}={quote(value, safe=':,!')}" for key, value in self.query]
        return f"{self.path}?{'&'.join(pairs)}"

    def content(self) -> bytes | None:
        """Return the body as sent."""
        if self.body is NO_BODY:
            return None
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()

    def all_headers(self) -> dict[str, str]:
        """Return the headers as sent: those of an admin who sends and accepts JSON, and this request's own."""
        headers: dict[str, str | None] = {"x-auth-token": "admin", "accept": "application/json"}
        if self.version is not None:
            headers["openstack-api-version"] = f"placement {self.version}"
        if self.body is not NO_BODY:
            headers["content-type"] = "application/json"
        return {name: value for name, value in {**headers, **self.headers}.items() if value is not None}

    def curl(self) -> str:
        """Return a shell command that sends the request to $URL."""
        words = ["curl", "-sS", "-X", self.method]
        for name, value in self.all_headers().items():
            words += ["-H", f"{name}: {value}"]
        content = self.content()
        if content is not None:
            words += ["--data-binary", content.decode("utf-8", "backslashreplace")]
        return f'{shlex.join(words)} "$URL"{shlex.quote(self.target())}'


def _resolved(value: Any, lookup: Lookup) -> Any:
    if isinstance(value, Generation):
        present = lookup(value.kind, value.uuid)
        if value.offset or (present is None and value.kind == "provider"):
            return (present or 0) + value.offset
        return present
    if isinstance(value, dict):
        return {key: _resolved(item, lookup) for key, item in value.items()}
    if isinstance(value, list):
        return [_resolved(item, lookup) for item in value]
    return value
