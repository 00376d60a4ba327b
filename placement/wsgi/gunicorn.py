"""gunicorn settings for this server: ``gunicorn --config python:placement.wsgi.gunicorn``. Command line options win.

The application is created before the fork and shared by the workers. SIGHUP recreates it; if the configuration is
invalid then, the previous application stays in force. For workers that each load their own, see
``stay_while_configuration_is_invalid``.
"""

from typing import Any

from placement.cli.serve import remake
from placement.wsgi import configured_application

wsgi_app = "placement.wsgi.api:application"
bind = "127.0.0.1:8778"
# Ignores Ctrl-C, which the arbiter passes on; limits how long clients may take. See docs/how-to/withstand-load.md.
worker_class = "placement.cli.http_worker.HttpWorker"
workers = 4
threads = 4
keepalive = 30
preload_app = True
# Clients send hundreds of aggregates in one query string.
limit_request_line = 0


def on_reload(arbiter: Any) -> None:
    """Recreate the application before the workers are replaced."""
    remake(arbiter.app, configured_application)
