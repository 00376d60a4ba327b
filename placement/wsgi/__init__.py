"""The application for WSGI servers; ``init_application`` is the entry point that the reference's scripts call.

On SIGHUP, a gunicorn without our settings starts new workers, each of which loads its own application, and stops the
old ones, even if the new ones fail to start. With an invalid configuration they do fail, so the old ones refuse to
stop: gunicorn then has enough workers and starts no more.
"""

import logging
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placement.app import create_app
from placement.errors import PlacementError
from placement.logs import configure_logging
from placement.settings import load, with_own_database
from placement.tuning import tune_process

if TYPE_CHECKING:
    from flask import Flask


LOG = logging.getLogger(__name__)


def init_application() -> "Flask":
    """Return the application that this machine's configuration describes.

    On a configuration error, exit with one sentence: no server should run without its application.
    """
    try:
        return configured_application()
    except PlacementError as error:
        sys.exit(error.message)


def configured_application() -> "Flask":
    """Return the same application, but raise errors.

    Raises:
        PlacementError: the configuration is unusable; the message says why.
    """
    settings = with_own_database(load())
    configure_logging(settings)
    application = create_app(settings)
    tune_process()
    return application


def stay_while_configuration_is_invalid() -> None:
    """Keep this process, if it is a gunicorn worker, from stopping in favour of workers that cannot start."""
    end = signal.getsignal(signal.SIGTERM)
    worker = getattr(end, "__self__", None)
    base = sys.modules.get("gunicorn.workers.base")
    if base is None or not isinstance(worker, base.Worker):
        return

    is_deciding = is_asked_again = False

    def stay_or_end(number: int, frame: Any) -> None:
        nonlocal is_deciding, is_asked_again
        is_asked_again = True
        if is_deciding:
            return  # It interrupted itself, in the middle of a file or an import; that call decides again.
        is_deciding = True
        reason = None
        while is_asked_again:
            is_asked_again = False
            reason = _why_invalid() if _is_being_replaced(worker.cfg.workers) else None
        is_deciding = False
        if reason is None:
            end(number, frame)  # type: ignore[operator, misc]
        else:
            LOG.error("The configuration is not valid, the one before stays in force: %s", reason)

    signal.signal(signal.SIGTERM, stay_or_end)


def _is_being_replaced(workers: int) -> bool:
    """Tell whether gunicorn has more workers than it wants; False if it is shutting down or if that is unknown."""
    parent = os.getppid()
    try:
        children = Path(f"/proc/{parent}/task/{parent}/children").read_text(encoding="ascii")
    except OSError:
        return False
    return len(children.split()) > workers


def _why_invalid() -> str | None:
    try:
        load()
    except PlacementError as error:
        return error.message
    return None
