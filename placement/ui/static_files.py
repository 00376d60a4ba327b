"""The console's stylesheets and scripts. Their addresses hold a digest of the content, so that browsers keep them."""

import gzip
import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from flask import Blueprint, Flask, Request, Response, request, url_for

from placement.errors import NotFound

DIRECTORY = Path(__file__).parent / "static"
TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
FOREVER = "public, max-age=31536000, immutable"
"""What browsers may do with a file whose address changes when it does."""


@dataclass(frozen=True)
class StaticFile:
    """A file as it is served."""

    content: bytes
    content_type: str

    @cached_property
    def digest(self) -> str:
        """What changes with the content."""
        return hashlib.sha256(self.content).hexdigest()[:16]

    @cached_property
    def packed(self) -> bytes:
        """The content as gzip has it, the same in every process."""
        return gzip.compress(self.content, mtime=0)

    def answer(self, request: Request, *, cache_control: str) -> Response:
        """Return the answer to a request for it."""
        packs = request.accept_encodings.quality("gzip") > 0
        response = Response(self.packed if packs else self.content, content_type=self.content_type)
        if packs:
            response.headers["content-encoding"] = "gzip"
        response.headers["vary"] = "accept-encoding"
        response.headers["cache-control"] = cache_control
        # A weak one: it is the same whether packed or not.
        response.set_etag(self.digest, weak=True)
        response.make_conditional(request)
        return response


def static_files() -> dict[str, StaticFile]:
    """Return all files by their path below the directory."""
    return {
        path.relative_to(DIRECTORY).as_posix(): StaticFile(path.read_bytes(), f"{TYPES[path.suffix]}; charset=utf-8")
        for path in DIRECTORY.rglob("*")
        if path.suffix in TYPES
    }


def install_static_files(app: Flask, console: Blueprint) -> None:
    """Serve the files below /ui/static to anybody, and let templates name them: ``static("console.css")``."""
    files = static_files()

    def serve(name: str) -> Response:
        digest, _, rest = name.partition("/")
        wanted = name if name in files else rest
        if wanted not in files:
            raise NotFound(f"The console has no file {name}.")
        found = files[wanted]
        # While servers are upgraded one by one, a page may name a file as another of them has it.
        return found.answer(request, cache_control=FOREVER if digest == found.digest else "no-cache")

    console.add_url_rule("/static/<path:name>", "static", serve)
    app.jinja_env.globals["static"] = lambda name: url_for("ui.static", name=f"{files[name].digest}/{name}")
