"""gunicorn serves Placement: gunicorn --config /etc/placement/gunicorn.conf.py. See docs/deploying.md."""

wsgi_app = "placement.wsgi.api:application"
bind = "127.0.0.1:8778"
worker_class = "gthread"
workers = 4
threads = 4
keepalive = 30
# The application is loaded once and shared by forks. Without it, SIGHUP reads the configuration again.
preload_app = True
# Clients put hundreds of aggregates into one query string.
limit_request_line = 0
