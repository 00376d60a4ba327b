"""The WSGI application: ``gunicorn placement.wsgi.api:application``."""

from placement.wsgi import init_application
from placement.wsgi.replaced_worker import stay_while_configuration_is_invalid

application = init_application()
stay_while_configuration_is_invalid()
