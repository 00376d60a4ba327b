"""The application as WSGI servers want it; ``init_application`` is what scripts made for the reference call."""

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
    """Return the application that the configuration of this machine describes.

    What stops the start is told in one sentence, and ends the process: no server should run without its application.
    """
    try:
        return configured_application()
    except PlacementError as error:
        sys.exit(error.message)


def configured_application() -> "Flask":
    """Return the same; what stops the start is raised.

    Raises:
        PlacementError: the message tells what is wrong.
    """
    settings = with_own_database(load())
    configure_logging(settings)
    application = create_app(settings)
    tune_process()
    return application
