"""One request as the views see it: who asks for what at which microversion, and how to answer."""

import random
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from itertools import chain
from typing import Any
from urllib.parse import quote

import orjson
from flask import Request, Response, g
from werkzeug.datastructures import MIMEAccept
from werkzeug.exceptions import HTTPException, RequestEntityTooLarge
from werkzeug.http import http_date

from placement.api.fields import Field, load, load_document, refuse_deep
from placement.api.planner.journal_feed import Listeners
from placement.api.query import Query
from placement.api.versions import Version, Versioned
from placement.auth.policy import Policy
from placement.candidates.ranking import Ranking
from placement.domain.identity import Identity
from placement.domain.tree import PlaceLock
from placement.errors import Forbidden, Invalid
from placement.services.allocation_candidates import SearchOptions
from placement.services.bulk_read import StandingAudit
from placement.services.fair_share.gate import PlainGate
from placement.services.fair_share.shares import UsageCache
from placement.services.fragmentation import FragmentationJudge
from placement.services.health import Readiness
from placement.settings import Settings
from placement.store.connection.batching import BackgroundWork
from placement.store.connection.database import Database
from placement.telemetry.record import Meters
from placement.tuning import give_memory_back

LARGE_BYTES = 1_000_000
GZIP = 16 + zlib.MAX_WBITS
LEVEL = 1
"""Takes 6 ms per megabyte of JSON and leaves a sixth of it; the default level takes 18 ms to save a fifth."""


def answer_in_pieces(request: Request, pieces: Iterable[bytes], media_type: str) -> Response:
    """Answer with text written piece by piece; writing must not fail once LARGE_BYTES are out."""
    remaining = iter(pieces)
    begun, size = [], 0
    for piece in remaining:
        begun.append(piece)
        size += len(piece)
        if size >= LARGE_BYTES:
            return _large(request, chain(begun, remaining), media_type)
    return Response(b"".join(begun), content_type=media_type)


def _large(request: Request, pieces: Iterator[bytes], media_type: str) -> Response:
    takes_gzip = request.accept_encodings["gzip"] > 0
    response = Response(_compressed(pieces) if takes_gzip else pieces, content_type=media_type)
    response.headers["vary"] = "accept-encoding"
    if takes_gzip:
        response.headers["content-encoding"] = "gzip"
    response.call_on_close(give_memory_back)
    return response


def _compressed(pieces: Iterable[bytes]) -> Iterator[bytes]:
    compressor = zlib.compressobj(LEVEL, zlib.DEFLATED, GZIP)
    for piece in pieces:
        if compressed := compressor.compress(piece):
            yield compressed
    yield compressor.flush()


# Underscores are invalid in domain names, but names of containers and of nginx upstreams have them.
HOST = re.compile(r"([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::(?P<port>[0-9]{0,5}))?")
MAX_PORT = 65535
IN_A_PATH = "!$&'()*+,/:;=@~%"


def root_url(environ: dict[str, Any]) -> str:
    """Return the URL of this API's root, without a trailing slash; Invalid if the Host header is malformed."""
    host = environ.get("HTTP_HOST") or f"{environ['SERVER_NAME']}:{environ['SERVER_PORT']}"
    if not is_host(host):
        raise Invalid("The Host header has to be a host, or a host and a port.")
    prefix = quote(environ.get("SCRIPT_NAME", "").encode("latin-1").rstrip(b"/"), safe=IN_A_PATH)
    scheme = environ["wsgi.url_scheme"]
    usual_port = {"http": ":80", "https": ":443"}.get(scheme)
    return f"{scheme}://{host.removesuffix(usual_port) if usual_port else host}{prefix}"


def is_host(value: str) -> bool:
    """Tell whether a text is a host, or a host and a port."""
    match = HOST.fullmatch(value)
    return match is not None and int(match["port"] or 0) <= MAX_PORT


JSON = "application/json"

WORD = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
MEDIA_RANGE = re.compile(rf"\s*({WORD}/{WORD}\s*(;.*)?)?")


def accepted_types(request: Request) -> MIMEAccept | None:
    """Return what a client accepts, or None if that is anything.

    As in openstack-placement, a header with an entry that names no media type, such as ``*`` or ``json``, is ignored.
    """
    accepted = request.accept_mimetypes
    if not accepted:
        return None
    is_well_formed = all(map(MEDIA_RANGE.fullmatch, request.headers["accept"].split(",")))
    return accepted if is_well_formed else None


@dataclass(frozen=True, slots=True)
class Server:
    """What all requests of one application share.

    ``locks`` are the locks of places that plain requests respect as well. ``search`` is how the operator has configured
    the search for candidates, ``ranking`` their order, None without one; ``judge`` scores fragmentation if the ranking
    in force uses it.
    """

    database: Database
    policy: Policy
    settings: Settings
    usage_cache: UsageCache
    listeners: Listeners
    readiness: Readiness
    fragmentation_judges: Mapping[str, FragmentationJudge]
    audit: StandingAudit
    plain_gate: PlainGate | None
    background: tuple[BackgroundWork, ...]
    locks: tuple[PlaceLock, ...]
    search: SearchOptions
    ranking: Ranking | None
    judge: FragmentationJudge | None
    meters: Meters


class Call:
    """A request with its microversion and caller."""

    def __init__(self, server: Server, request: Request, version: Version, identity: Identity | None) -> None:
        self.server = server
        self.request = request
        self.version = version
        self._identity = identity

    @property
    def database(self) -> Database:
        """The server's database."""
        return self.server.database

    @property
    def identity(self) -> Identity:
        """The caller. Only version discovery and health checks are served without one."""
        assert self._identity is not None
        return self._identity

    @property
    def ranking(self) -> Ranking | None:
        """How the operator wants candidates ordered; None if no ranking is enabled."""
        ranking = self.server.ranking
        if ranking is not None and self.server.settings.placement.randomize_allocation_candidates:
            return replace(ranking, seed=random.getrandbits(32))
        return ranking

    def since(self, minor: int) -> bool:
        """Tell whether the request's microversion is 1.``minor`` or newer."""
        return self.version.minor >= minor

    def authorize(self, rule: str, **target: Any) -> None:
        """Raise Forbidden unless the caller passes the policy rule."""
        self.server.policy.authorize(rule, self.identity, target)

    def is_allowed(self, rule: str, **target: Any) -> bool:
        """Tell whether the caller passes the policy rule."""
        try:
            self.authorize(rule, **target)
        except Forbidden:
            return False
        return True

    @cached_property
    def query(self) -> Query:
        """The decoded query string."""
        return Query.parse(self.request.query_string)

    def body(self, schemas: Versioned[Field] | Field) -> Any:
        """Return the JSON body, validated by the schema for the request's microversion."""
        return load(schemas.at(self.version) if isinstance(schemas, Versioned) else schemas, self._json_body())

    def document(self, schema: Field) -> Any:
        """Return the JSON body of a planner request; errors name the path in the body."""
        return load_document(schema, self._json_body())

    def _json_body(self) -> Any:
        try:
            document = orjson.loads(self._whole_body())
        except orjson.JSONDecodeError as error:
            raise Invalid(f"Malformed JSON: {error}") from error
        refuse_deep(document)
        return document

    def _whole_body(self) -> bytes:
        """Return the body. One of unknown length (chunked) ends at the limit: it is too large if there is more."""
        is_chunked = self.request.content_length is None
        try:
            body = self.request.get_data(cache=False)
            is_cut = is_chunked and len(body) == self.request.max_content_length
            if is_cut and self.request.environ["wsgi.input"].read(1):
                raise RequestEntityTooLarge
        except HTTPException:
            raise
        except Exception as error:
            # Chunks are decoded while they are read, and each WSGI server has its own errors for malformed ones.
            raise Invalid(f"The request body cannot be read: {type(error).__name__}.") from error
        return body

    def link(self, path: str) -> str:
        """Return a link within this API: the path below the mount prefix, without scheme and host."""
        return self.request.script_root + path

    def json(self, document: Any, *, last_modified: datetime | None = None, status: int = 200) -> Response:
        """Answer with a JSON document, dated from 1.15 on (with the current time if nothing in it has a date)."""
        response = Response(orjson.dumps(document), status, content_type=JSON)
        self.date(response, last_modified)
        return response

    def empty(self, status: int = 204, *, location: str | None = None) -> Response:
        """Answer without a body. ``location`` is a path within this API; clients get the absolute URL."""
        response = Response(status=status)
        del response.headers["content-type"]
        if status == 204:
            response.headers.pop("content-length", None)
        if location is not None:
            self.locate(response, location)
        return response

    def locate(self, response: Response, path: str) -> None:
        """Add a ``location`` header, always absolute because clients follow it as it is."""
        response.headers["location"] = g.root_url + path

    def date(self, response: Response, last_modified: datetime | None) -> None:
        """Add the caching headers of 1.15 and later. Datetimes in the tables are naive UTC."""
        if not self.since(15):
            return
        instant = last_modified.replace(tzinfo=UTC) if last_modified else datetime.now(UTC)
        response.headers["last-modified"] = http_date(instant)
        response.headers["cache-control"] = "no-cache"
