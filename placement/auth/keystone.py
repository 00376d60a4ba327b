"""The strategy ``keystone``: tokens, checked by keystonemiddleware as configured in ``[keystone_authtoken]``.

Importing this module imports keystonemiddleware, which is large, so it happens only if this strategy is chosen.
"""

import logging
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from keystonemiddleware.auth_token import AuthProtocol
from webob.exc import HTTPServiceUnavailable, WSGIHTTPException

from placement.auth.strategy import is_console, is_open, roles_in
from placement.domain.identity import Identity
from placement.errors import ConfigurationError, Unavailable
from placement.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterable
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

LOG = logging.getLogger(__name__)

TOKEN = "keystone.token_info"  # noqa: S105 - the environ key for keystone's description of the token
UNCHECKED = "placement.token_unchecked"
"""The environ key that marks a token as unverifiable; no client header can set it."""


class Keystone:
    """Identifies callers by their keystone token."""

    def __init__(self, settings: Settings) -> None:
        self._source = settings.source

    def wrap(self, wsgi_app: "WSGIApplication") -> "WSGIApplication":
        """Wrap the application in keystonemiddleware, bypassing it for open paths.

        Visitors of the console without a token bypass it as well: ``identify`` refuses them just the same, and the
        console has an error page for that.
        """
        try:
            checked = _TokenCheck(wsgi_app, {"oslo_config_config": self._source} if self._source else {})
        except Exception as error:
            # A plugin or an option may raise anything; the operator needs a sentence, not a traceback.
            raise ConfigurationError(f"[keystone_authtoken] cannot be used: {error}") from error
        if self._source:
            _require_cache_client(self._source.keystone_authtoken)

        def guarded(environ: "WSGIEnvironment", start_response: "StartResponse") -> "Iterable[bytes]":
            path = environ.get("PATH_INFO", "")
            passes = is_open(path) or (is_console(path) and "HTTP_X_AUTH_TOKEN" not in environ)
            return (wsgi_app if passes else checked)(environ, start_response)

        return guarded

    def identify(self, environ: "WSGIEnvironment") -> Identity | None:
        """Return the caller of a request that passed the middleware; headers alone prove nothing."""
        if UNCHECKED in environ:
            raise Unavailable("The identity service cannot be reached, so the token cannot be checked; try again.")
        if TOKEN not in environ or environ.get("HTTP_X_IDENTITY_STATUS") != "Confirmed":
            return None
        return _caller(environ)


def _require_cache_client(options: Any) -> None:
    """Refuse to start without the memcached client: the middleware would import it for each token, and fail."""
    if not options.memcached_servers:
        return
    # Which options exist depends on the middleware's release.
    has_login = any(options[name] for name in ("memcache_sasl_enabled", "memcache_tls_enabled") if name in options)
    module, package = ("bmemcached", "python-binary-memcached") if has_login else ("memcache", "python-memcached")
    if find_spec(module) is None:
        raise ConfigurationError(
            f"[keystone_authtoken] memcached_servers needs {package}, which is not installed: pip install {package}."
        )


class _TokenCheck(AuthProtocol):  # type: ignore[misc]
    """keystonemiddleware, but a token that cannot be verified is answered in this API's own error format."""

    @property
    def www_authenticate_uri(self) -> Any:
        """The address in a 401's challenge; empty if it is neither configured nor discoverable."""
        try:
            return super().www_authenticate_uri
        except Exception:
            return ""

    def process_request(self, request: Any) -> Any:
        """Check the token; the middleware's own 401 passes through, other failures are left to ``identify``."""
        try:
            super().process_request(request)
        except HTTPServiceUnavailable:
            request.environ[UNCHECKED] = True
        except WSGIHTTPException:
            raise
        except Exception:
            LOG.exception("The token cannot be checked")
            request.environ[UNCHECKED] = True
        for name in [name for name, value in request.environ.items() if value is None]:
            del request.environ[name]  # the middleware's; WSGI allows only text


def _caller(environ: "WSGIEnvironment") -> Identity:
    return Identity(
        user_id=environ.get("HTTP_X_USER_ID", ""),
        project_id=environ.get("HTTP_X_PROJECT_ID"),
        roles=roles_in(environ, "HTTP_X_ROLES"),
        # From the token itself, because the middleware lets a service token overwrite the header.
        system_scope="all" if environ[TOKEN].get("token", {}).get("system", {}).get("all") else None,
        service_roles=roles_in(environ, "HTTP_X_SERVICE_ROLES"),
        domain_id=environ.get("HTTP_X_DOMAIN_ID"),
        user_domain_id=environ.get("HTTP_X_USER_DOMAIN_ID"),
        project_domain_id=environ.get("HTTP_X_PROJECT_DOMAIN_ID"),
        service_user_id=environ.get("HTTP_X_SERVICE_USER_ID"),
        service_user_domain_id=environ.get("HTTP_X_SERVICE_USER_DOMAIN_ID"),
        service_project_id=environ.get("HTTP_X_SERVICE_PROJECT_ID"),
        service_project_domain_id=environ.get("HTTP_X_SERVICE_PROJECT_DOMAIN_ID"),
        is_admin_project=environ.get("HTTP_X_IS_ADMIN_PROJECT", "true").lower() == "true",
    )
