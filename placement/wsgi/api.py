"""The WSGI application: ``gunicorn placement.wsgi.api:application``."""

from placement.wsgi import init_application, stay_while_configuration_is_invalid

application = init_application()
stay_while_configuration_is_invalid()
