"""The WSGI application: ``gunicorn placement.wsgi.api:application``."""

from placement.app import create_app
from placement.logs import configure_logging
from placement.settings import load, with_own_database

_settings = with_own_database(load())
configure_logging(_settings)
application = create_app(_settings)
