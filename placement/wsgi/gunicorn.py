"""gunicorn's settings for this server: ``gunicorn --config python:placement.wsgi.gunicorn``. Its options override them.

The application is made before the fork and shared by the workers. At SIGHUP it is made again; while the configuration
is not valid, the one before stays in force. Where each worker loads its own, see ``replaced_worker``.
"""

from typing import Any

from placement.cli.http_server import remake
from placement.wsgi import configured_application

wsgi_app = "placement.wsgi.api:application"
bind = "127.0.0.1:8778"
worker_class = "gthread"
workers = 4
threads = 4
keepalive = 30
preload_app = True
# Clients put hundreds of aggregates into one query string.
limit_request_line = 0


def on_reload(arbiter: Any) -> None:
    """Make the application again, before the workers are replaced."""
    remake(arbiter.app, configured_application)
