"""Serves Placement with gunicorn: gunicorn --config /etc/placement/gunicorn.conf.py. See docs/how-to/deploy.md."""

# Rereads the configuration at SIGHUP; while it is not valid, the previous one stays in force.
from placement.wsgi.gunicorn import on_reload  # noqa: F401

wsgi_app = "placement.wsgi.api:application"
# Change it if the proxy is on another machine, and keep clients away by a firewall then.
bind = "127.0.0.1:8778"
# Ignores Ctrl-C, which the arbiter passes on; limits how long clients may take. See docs/how-to/withstand-load.md.
worker_class = "placement.cli.http_worker.HttpWorker"
# As many workers as the server may use cores. Each opens up to one database connection per thread.
workers = 4
threads = 4
# Longer than the proxy keeps idle connections, or the proxy meets closed ones.
keepalive = 30
# The application is loaded once and shared by forks.
preload_app = True
# Clients put hundreds of aggregates into one query string.
limit_request_line = 0
