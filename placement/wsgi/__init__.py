"""The WSGI application under the path that deployment tools know."""
