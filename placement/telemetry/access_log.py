"""The access log: one line per request. It contains no client headers and therefore no tokens."""

import logging

from placement.logs import CURRENT_REQUEST
from placement.open_paths import OPEN_PATHS
from placement.telemetry.record import RequestRecord

LOG = logging.getLogger("placement.access")

MAX_URL_LENGTH = 4096
PROBED = OPEN_PATHS | {"/metrics"}
"""Paths that load balancers, kubelet and monitoring poll every few seconds; successes are logged at DEBUG."""

LINE = '%s "%s %s" status: %s len: %s microversion: %s time: %.6f sql: %d'


def log_access(record: RequestRecord) -> None:
    """Log a request in that request's context."""
    level = logging.DEBUG if record.route in PROBED and record.status < 400 else logging.INFO
    if not LOG.isEnabledFor(level):
        return
    environ = record.environ
    remote, method = environ.get("REMOTE_ADDR") or "-", environ["REQUEST_METHOD"]
    url, version = _url(record), record.version or "-"
    values = (remote, method, url, record.status, record.length, version, record.duration_s, record.statements)
    access = {
        "remote": remote,
        "method": method,
        "url": url,
        "route": record.route,
        "status": record.status,
        "length": record.length,
        "microversion": version,
        "duration_s": round(record.duration_s, 6),
        "sql": record.statements,
    }
    # Built by hand, because finding the caller's position costs a third of a line and the position is always this one.
    line = LOG.makeRecord(LOG.name, level, __file__, 0, LINE, values, None, "log_access", {"access": access})
    request = CURRENT_REQUEST.set(record.logged)
    try:
        LOG.handle(line)
    finally:
        CURRENT_REQUEST.reset(request)


def _url(record: RequestRecord) -> str:
    """Return path and query as sent, but escaped unless printable ASCII, since other characters could forge a line."""
    environ = record.environ
    url: str = environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "")
    if query := environ.get("QUERY_STRING"):
        url += "?" + query
    if len(url) > MAX_URL_LENGTH:
        url = url[:MAX_URL_LENGTH] + "..."
    return url if url.isascii() and url.isprintable() else url.encode("unicode_escape").decode("ascii")
