"""The application for WSGI servers; ``init_application`` is the entry point that the reference's scripts call."""

import sys
from typing import TYPE_CHECKING

from placement.app import create_app
from placement.errors import PlacementError
from placement.logs import configure_logging
from placement.settings import load, with_own_database
from placement.tuning import tune_process

if TYPE_CHECKING:
    from flask import Flask


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
