"""The composition root: the only module that sees everything. ``create_app(settings)`` makes the application."""

import gc
import logging
from typing import Any

from flask import Flask

from placement.api.call import Server
from placement.api.cors import wrap_with_cors
from placement.api.dispatch import install
from placement.auth import strategy_from
from placement.auth.policy import Policy
from placement.settings import Settings
from placement.store.opening import open_database

LOG = logging.getLogger(__name__)


class MountedFlask(Flask):
    """Flask that serves an empty path like ``/``: the service is often mounted under a prefix."""

    def wsgi_app(self, environ: dict[str, Any], start_response: Any) -> Any:
        """Serve one request."""
        if not environ.get("PATH_INFO"):
            environ["PATH_INFO"] = "/"
        return super().wsgi_app(environ, start_response)


def create_app(settings: Settings) -> Flask:
    """Make the WSGI application for a configuration.

    Raises:
        ConfigurationError: what stops the start, in one sentence.
    """
    strategy = strategy_from(settings)
    server = Server(database=open_database(settings.database), policy=Policy(settings), settings=settings)
    app = MountedFlask("placement", static_folder=None)
    app.extensions["placement"] = server
    install(app, server, strategy)
    app.wsgi_app = wrap_with_cors(strategy.wrap(app.wsgi_app), settings)  # type: ignore[method-assign]
    # What lives as long as the process is not worth a look at every collection.
    gc.freeze()
    return app
