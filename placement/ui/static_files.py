"""The console's stylesheets and scripts, and how pages and files are packed for browsers that take that.

The URL of a file contains a digest of its content, so that browsers keep it until it changes.
"""

import gzip
import hashlib
from pathlib import Path

from flask import Blueprint, Flask, Response, request, send_from_directory, url_for

from placement.errors import NotFound

DIRECTORY = Path(__file__).parent / "static"
TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
PACKED = frozenset({*TYPES.values(), "text/html", "text/csv"})
LEVEL = 1
"""Of gzip: pages are packed anew for each visitor."""

FOREVER = "public, max-age=31536000, immutable"
"""Cache-Control for a file whose URL changes with its content."""


def packed(response: Response) -> Response:
    """Compress a page or a file where the browser takes that. No page holds a secret that its length gives away."""
    if response.mimetype in PACKED and response.status_code not in (206, 304) and request.accept_encodings["gzip"]:
        response.direct_passthrough = False
        response.set_data(gzip.compress(response.get_data(), LEVEL, mtime=0))
        response.headers["content-encoding"] = "gzip"
    response.vary.add("accept-encoding")
    return response


def install_static_files(app: Flask, console: Blueprint) -> None:
    """Serve the files below /ui/static without authentication, and let templates link to ``static("console.css")``."""
    files = [path for path in DIRECTORY.rglob("*") if path.suffix in TYPES]
    digests = {
        path.relative_to(DIRECTORY).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()[:16] for path in files
    }

    def serve(name: str) -> Response:
        digest, _, path = name.partition("/")
        file = name if name in digests else path
        if file not in digests:
            raise NotFound(f"The console has no file {name}.")
        response = send_from_directory(DIRECTORY, file, mimetype=TYPES[Path(file).suffix], etag=digests[file])
        # Weak, because it is the same whether packed or not.
        response.set_etag(digests[file], weak=True)
        # During a rolling upgrade, a page from another server may name another version of a file.
        response.headers["cache-control"] = FOREVER if digest == digests[file] else "no-cache"
        return response

    console.add_url_rule("/static/<path:name>", "static", serve)
    app.jinja_env.globals["static"] = lambda name: url_for("ui.static", name=f"{digests[name]}/{name}")
