"""The console's stylesheets and scripts. Their URLs contain a digest of the content, so that browsers cache them."""

import gzip
import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from flask import Blueprint, Flask, Request, Response, request, url_for

from placement.errors import NotFound

DIRECTORY = Path(__file__).parent / "static"
TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
LEVEL = 1
"""Of pages, which are packed anew for each visitor."""

FOREVER = "public, max-age=31536000, immutable"
"""Cache-Control for a file whose URL changes with its content."""


@dataclass(frozen=True)
class StaticFile:
    """A file as served."""

    content: bytes
    content_type: str

    @cached_property
    def digest(self) -> str:
        """A digest that changes with the content."""
        return hashlib.sha256(self.content).hexdigest()[:16]

    @cached_property
    def packed(self) -> bytes:
        """The gzipped content, identical in every process."""
        return gzip.compress(self.content, mtime=0)

    def answer(self, request: Request, *, cache_control: str) -> Response:
        """Return the response to a request for this file."""
        packs = request.accept_encodings.quality("gzip") > 0
        response = Response(self.packed if packs else self.content, content_type=self.content_type)
        if packs:
            response.headers["content-encoding"] = "gzip"
        response.headers["vary"] = "accept-encoding"
        response.headers["cache-control"] = cache_control
        # The entity tag is weak because it is the same whether gzipped or not.
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


def packed(response: Response) -> Response:
    """Compress a page where the browser takes that. No page holds a secret that its length could give away."""
    if response.mimetype in ("text/html", "text/csv") and request.accept_encodings["gzip"] > 0:
        response.set_data(gzip.compress(response.get_data(), LEVEL, mtime=0))
        response.headers["content-encoding"] = "gzip"
    response.vary.add("accept-encoding")
    return response


def install_static_files(app: Flask, console: Blueprint) -> None:
    """Serve the files below /ui/static without authentication, and let templates link to ``static("console.css")``."""
    files = static_files()

    def serve(name: str) -> Response:
        digest, _, path = name.partition("/")
        file_name = name if name in files else path
        if file_name not in files:
            raise NotFound(f"The console has no file {name}.")
        file = files[file_name]
        # During a rolling upgrade, a page from another server may name another version of a file.
        return file.answer(request, cache_control=FOREVER if digest == file.digest else "no-cache")

    console.add_url_rule("/static/<path:name>", "static", serve)
    app.jinja_env.globals["static"] = lambda name: url_for("ui.static", name=f"{files[name].digest}/{name}")
