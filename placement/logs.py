"""Logging as the operator configured it, using only Python's own: handlers, formats, levels, and floods of lines.

Of lines that repeat, a few per second are written, then the number of those left out. A persistent fault logs at each
request: a full disk once wrote 1,593 tracebacks during one load test.
"""

import configparser
import json
import logging
import logging.config
import logging.handlers
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from placement.domain.identity import CURRENT_REQUEST, Identity, ServedRequest
from placement.errors import ConfigurationError
from placement.settings import LoggingSettings, Settings

MAX_LINES = 5
WINDOW_S = 1.0


class RationedLog:
    """Logs at most MAX_LINES lines of one cause within WINDOW_S, then how many it left out.

    ``later`` calls a function after a number of seconds.
    """

    def __init__(
        self,
        log: logging.Logger,
        *,
        clock: Callable[[], float] = time.monotonic,
        later: "Callable[[float, Callable[[], None]], object] | None" = None,
    ) -> None:
        self._log = log
        self._clock = clock
        self._later = later or _by_a_thread
        self._lock = threading.Lock()
        self._windows: dict[str, tuple[float, int]] = {}  # by cause: when its window began, and the lines since

    def write(self, level: int, cause: str, message: str, *values: Any, **options: Any) -> None:
        """Log a line unless its cause has used up its share; ``options`` are those of ``Logger.log``."""
        self._close(level, cause)
        with self._lock:
            began, lines = self._windows.get(cause) or (self._clock(), 0)
            lines += 1
            self._windows[cause] = began, lines
        if lines <= MAX_LINES:
            self._log.log(level, message, *values, **options)
        elif lines == MAX_LINES + 1:
            self._later(WINDOW_S, lambda: self._close(level, cause))

    def _close(self, level: int, cause: str) -> None:
        """Log how many lines were left out, if the window is over."""
        with self._lock:
            began, lines = self._windows.get(cause) or (self._clock(), 0)
            if self._clock() - began < WINDOW_S:
                return
            del self._windows[cause]
        if lines > MAX_LINES:
            self._log.log(level, "%d more like this within a second: %s", lines - MAX_LINES, cause)


def _by_a_thread(seconds: float, call: Callable[[], None]) -> None:
    timer = threading.Timer(seconds, call)
    timer.daemon = True
    timer.start()


LOG = logging.getLogger(__name__)

LOG_FILE = "placement.log"
UNWRITTEN_EVERY_S = 60.0
"""A log that cannot be written is reported once in this time."""


def configure_logging(settings: Settings) -> None:
    """Set up logging for this process, replacing any earlier setup; call once, at startup.

    Raises:
        ConfigurationError: a file cannot be written or read, or a level or facility does not exist.
    """
    try:
        _apply(settings.logging)
        for handler in _all_handlers():
            _report_failures_briefly(handler)
    except ImportError as error:
        package = (error.name or "").partition(".")[0].replace("_", ".")
        raise ConfigurationError(
            f"{settings.logging.log_config_append} names {error.name}, which is not installed: pip install {package}."
        ) from error
    except (OSError, ValueError, KeyError, RuntimeError, NameError, AttributeError, configparser.Error) as error:
        raise ConfigurationError(f"Logging cannot be set up as configured: {error}") from error
    logging.captureWarnings(capture=True)
    _log_settings(settings)


def _apply(options: LoggingSettings) -> None:
    if options.log_config_append:
        if not Path(options.log_config_append).is_file():
            raise FileNotFoundError(f"no file {options.log_config_append}")
        _configure_by_file(options)
        return
    logging.basicConfig(handlers=_handlers(options), level="DEBUG" if options.debug else "INFO", force=True)
    formatter = (JsonFormatter if options.use_json else RequestFormatter)(options=options)
    for handler in logging.getLogger().handlers:
        handler.setFormatter(formatter)
    for pair in options.default_log_levels:
        name, _, level = pair.partition("=")
        logging.getLogger(name).setLevel(int(level) if level.isdigit() else level)


def _configure_by_file(options: LoggingSettings) -> None:
    """Configure logging from the operator's file, with our formatters in place of oslo.log's.

    oslo.log's formatters need its own options and fail on every line without them; ours write the same output.
    """
    parser = configparser.ConfigParser(interpolation=None)
    parser.read(str(options.log_config_append), encoding="utf-8")
    for section in parser.sections():
        ours = _FORMATTERS.get(parser.get(section, "class", fallback=""))
        if section.startswith("formatter_") and ours is not None:
            parser.set(section, "class", f"{__name__}.{ours}")
    logging.config.fileConfig(parser, disable_existing_loggers=False)
    for handler in _all_handlers():
        if isinstance(handler.formatter, RequestFormatter):
            date_format = handler.formatter.datefmt or options.log_date_format
            handler.setFormatter(type(handler.formatter)(options=options, datefmt=date_format))


def _all_handlers() -> Iterator[logging.Handler]:
    loggers = [logging.getLogger(), *logging.getLogger().manager.loggerDict.values()]
    for logger in loggers:
        if isinstance(logger, logging.Logger):
            yield from logger.handlers


def _handlers(options: LoggingSettings) -> list[logging.Handler]:
    handlers: list[logging.Handler] = []
    if options.log_file or options.log_dir:
        path = Path(options.log_dir or "") / (options.log_file or LOG_FILE)
        handlers.append(LogFile(path))
    if options.use_syslog:
        facility = options.syslog_log_facility.lower().removeprefix("log_")
        address = "/dev/log" if Path("/dev/log").exists() else ("localhost", logging.handlers.SYSLOG_UDP_PORT)
        names = logging.handlers.SysLogHandler.facility_names
        handlers.append(logging.handlers.SysLogHandler(address, names[facility]))
    if options.use_journal and (journal := _journal()):
        handlers.append(journal)
    if options.use_stderr or not handlers:
        handlers.append(logging.StreamHandler(sys.stderr))
    return handlers


class LogFile(logging.handlers.WatchedFileHandler):
    """A log file that something else may rotate. If it cannot be reopened then, the request goes on without a log."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record."""
        try:
            super().emit(record)
        except OSError:
            self.handleError(record)


def _report_failures_briefly(handler: logging.Handler) -> None:
    """Let a full disk cost one line a minute on standard error; Python would print a stack for each record."""
    report_in_full = handler.handleError
    target = getattr(handler, "baseFilename", "the log")
    next_report = 0.0

    def report(record: logging.LogRecord) -> None:
        nonlocal next_report
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            report_in_full(record)
        elif time.monotonic() >= next_report:
            next_report = time.monotonic() + UNWRITTEN_EVERY_S
            with suppress(OSError, ValueError):
                sys.stderr.write(f"placement: {target} cannot be written: {error.strerror or error}\n")

    handler.handleError = report  # type: ignore[method-assign]


def _journal() -> logging.Handler | None:
    """Return a handler for the systemd journal if its Python package is installed."""
    try:
        module = import_module("systemd.journal")
    except ImportError:
        return None
    handler: logging.Handler = module.JournalHandler(SYSLOG_IDENTIFIER="placement")
    return handler


def _log_settings(settings: Settings) -> None:
    if settings.logging.use_journal and find_spec("systemd") is None:
        LOG.warning(
            "[DEFAULT] use_journal needs the package systemd-python, which is not installed; messages go to standard "
            "error, which a systemd unit puts into the journal, too."
        )
    if settings.ignored_options:
        LOG.warning("These options are set and have no effect in this server: %s", ", ".join(settings.ignored_options))
    if settings.source is not None and settings.logging.log_options:
        settings.source.log_opt_values(LOG, logging.DEBUG)


class RequestFormatter(logging.Formatter):
    """Formats a record as oslo.log does, with the operator's format strings.

    As there, a missing value is ``None``, or ``-`` within ``user_identity``: log collectors parse it so. Keys unknown
    to this server become ``-`` (or empty, where oslo.log has nothing), so that a format string written for another
    service does not break logging.
    """

    def __init__(
        self,
        fmt: str | None = None,
        datefmt: str | None = None,
        *_style: Any,
        options: LoggingSettings | None = None,
        **_more: Any,
    ) -> None:
        """Take what a logging file says, of which only the format of dates counts, or the options."""
        self._options = options or LoggingSettings()
        super().__init__(fmt, datefmt or (options.log_date_format if options else None))

    def format(self, record: logging.LogRecord) -> str:
        """Return the text of a record, with the prefix on each line of its traceback."""
        request = CURRENT_REQUEST.get()
        record.message = record.getMessage()
        record.asctime = self.formatTime(record, self.datefmt)
        values = _FormatValues(record.__dict__ | self._request_values(request))
        text = self._format_string(record, with_request=request is not None) % values
        if record.exc_info:
            prefix = self._options.logging_exception_prefix % values
            trace = self.formatException(record.exc_info)
            text = "\n".join([text, *(prefix + line for line in trace.splitlines())])
        return text

    def _format_string(self, record: logging.LogRecord, *, with_request: bool) -> str:
        options = self._options
        text = options.logging_context_format_string if with_request else options.logging_default_format_string
        if record.levelno == logging.DEBUG and options.logging_debug_format_suffix:
            text += " " + options.logging_debug_format_suffix
        return text

    def _request_values(self, request: ServedRequest | None) -> dict[str, Any]:
        if request is None:
            return {}
        identity = _identity_values(request.identity)
        shown = _FormatValues({name: value for name, value in identity.items() if value})
        return {
            **identity,
            "request_id": request.request_id,
            "global_request_id": request.global_request_id,
            "user_identity": self._options.logging_user_identity_format % shown,
        }


def _identity_values(identity: Identity | None) -> dict[str, str | None]:
    caller = identity or Identity("")
    return {
        "user": caller.user_id or None,
        "project": caller.project_id,
        "domain": caller.domain_id,
        "system_scope": caller.system_scope,
        "user_domain": caller.user_domain_id,
        "project_domain": caller.project_domain_id,
    }


class JsonFormatter(RequestFormatter):
    """Formats a record as one line of JSON, with the keys of oslo.log's JSON formatter.

    ``context`` describes the request; ``access``, on access log lines, describes its outcome.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the JSON line of a record."""
        request = CURRENT_REQUEST.get()
        document = {
            "created": record.created,
            "asctime": self.formatTime(record, self.datefmt),
            "levelname": record.levelname,
            "name": record.name,
            "process": record.process,
            "thread_name": record.threadName,
            "message": record.getMessage(),
        }
        if request is not None:
            document["context"] = self._request_values(request)
        if record.exc_info:
            document["traceback"] = self.formatException(record.exc_info).splitlines()
        if (access := getattr(record, "access", None)) is not None:
            document["access"] = access
        return json.dumps(document, default=str)


_FORMATTERS = {
    "oslo_log.formatters.ContextFormatter": RequestFormatter.__name__,
    "oslo_log.formatters.JSONFormatter": JsonFormatter.__name__,
}
"""What stands for oslo.log's formatters in a file."""


class _FormatValues(dict[str, Any]):
    """Values for a format string, with a default for every unknown key."""

    def __missing__(self, key: str) -> str:
        return "" if key in {"instance", "resource", "color", "reset_color"} else "-"
