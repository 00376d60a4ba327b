"""The access log: one line for each request. It holds no header of the client's, and so no token."""

import logging

from placement.logs import CURRENT_REQUEST
from placement.open_paths import OPEN_PATHS
from placement.telemetry.record import RequestRecord

LOG = logging.getLogger("placement.access")

LONGEST_URL = 4096
PROBED = OPEN_PATHS | {"/metrics"}
"""Asked every few seconds by machines, ``/`` by load balancers and by kubelet: logged at DEBUG while all is well."""

LINE = '%s "%s %s" status: %s len: %s microversion: %s time: %.6f sql: %d'


def log_access(record: RequestRecord) -> None:
    """Write the line of a request, as part of that request."""
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
    # Made by hand: finding out where it was logged costs a third of a line, and it is always here.
    line = LOG.makeRecord(LOG.name, level, __file__, 0, LINE, values, None, "log_access", {"access": access})
    request = CURRENT_REQUEST.set(record.logged)
    try:
        LOG.handle(line)
    finally:
        CURRENT_REQUEST.reset(request)


def _url(record: RequestRecord) -> str:
    """Return the path and query as sent; what is no printable ASCII could forge a line, and is escaped."""
    environ = record.environ
    url: str = environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "")
    if query := environ.get("QUERY_STRING"):
        url += "?" + query
    if len(url) > LONGEST_URL:
        url = url[:LONGEST_URL] + "..."
    return url if url.isascii() and url.isprintable() else url.encode("unicode_escape").decode("ascii")
