"""The WSGI application: ``gunicorn placement.wsgi.api:application``."""

from placement.app import create_app
from placement.logs import configure_logging
from placement.settings import load

_settings = load()
configure_logging(_settings)
application = create_app(_settings)
