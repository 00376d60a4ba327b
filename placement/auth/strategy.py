"""Strategies of authentication: which paths need one, the configured one, and ``noauth2``, for tests."""

import logging
from importlib import import_module
from ipaddress import IPv6Address, ip_address
from typing import TYPE_CHECKING, Protocol, cast

from placement.domain.identity import Identity
from placement.errors import ConfigurationError, Forbidden
from placement.settings import Settings

if TYPE_CHECKING:
    from wsgiref.types import WSGIApplication, WSGIEnvironment

LOG = logging.getLogger(__name__)

HEALTH_PATHS = frozenset({"/healthcheck", "/readycheck"})
OPEN_PATHS = HEALTH_PATHS | {"", "/"}
"""Version discovery, also when mounted under a prefix, and health checks."""

CONSOLE_PATH = "/ui"
_CONSOLE_PAGES = f"{CONSOLE_PATH}/"
_STATIC_FILES = f"{CONSOLE_PATH}/static/"


def is_open(path: str) -> bool:
    """Tell whether a path needs no credentials. Static files of the console reveal nothing about a cloud."""
    return path in OPEN_PATHS or path.startswith(_STATIC_FILES)


def is_console(path: str) -> bool:
    """Tell whether a path is a page of the console."""
    return path == CONSOLE_PATH or path.startswith(_CONSOLE_PAGES)


class AuthStrategy(Protocol):
    """A way to find out who is calling."""

    def wrap(self, wsgi_app: "WSGIApplication") -> "WSGIApplication":
        """Wrap the application in the middleware that the strategy needs."""

    def identify(self, environ: "WSGIEnvironment") -> Identity | None:
        """Return the caller, or None if the request does not identify or authenticate one."""


def strategy_from(settings: Settings) -> AuthStrategy:
    """Return the configured strategy, importing what it needs only now; ConfigurationError if it cannot be used."""
    name = settings.auth_strategy
    if name == "noauth2":
        if not settings.auth_is_implicit:
            LOG.warning("[api] auth_strategy is noauth2: anyone who can reach this server has administrator rights.")
        return NoAuth(local_only=settings.auth_is_implicit)
    if name == "http_basic":
        return cast("AuthStrategy", import_module("placement.auth.http_basic").HttpBasic.from_settings(settings))
    if name == "keystone":
        try:
            return cast("AuthStrategy", import_module("placement.auth.keystone").Keystone(settings))
        except ImportError as error:
            raise ConfigurationError(
                "[api] auth_strategy is keystone (the default wherever anything is configured), and keystonemiddleware "
                "is not installed: pip install 'placement-server[keystone]', or choose another auth_strategy."
            ) from error
    raise ConfigurationError(f"[api] auth_strategy is {name!r}; it must be keystone, http_basic or noauth2.")


class NoAuth:
    """Takes the caller from the token, ``USER`` or ``USER:PROJECT``; ``admin`` has the role admin.

    Where it is in force only because nothing is configured, it serves ``local_only``, and nobody behind a proxy.
    """

    def __init__(self, *, local_only: bool = False) -> None:
        self._local_only = local_only

    def wrap(self, wsgi_app: "WSGIApplication") -> "WSGIApplication":
        """Return the application unchanged."""
        return wsgi_app

    def identify(self, environ: "WSGIEnvironment") -> Identity | None:
        """Return the caller named by the token; an empty token is a token, too."""
        is_forwarded = any(name == "HTTP_FORWARDED" or name.startswith("HTTP_X_FORWARDED") for name in environ)
        if self._local_only and (is_forwarded or not _is_local(environ)):
            raise Forbidden(
                "No authentication is configured, so only callers on the same machine are served. "
                "Set [api] auth_strategy to serve others."
            )
        token = environ.get("HTTP_X_AUTH_TOKEN")
        return None if token is None else _caller(token, environ)


def _caller(token: str, environ: "WSGIEnvironment") -> Identity:
    user, _, project = token.partition(":")
    system_scope = environ.get("HTTP_OPENSTACK_SYSTEM_SCOPE") or None
    own_project = None if system_scope else project or user
    own_roles = ("admin",) if user == "admin" else ()
    return Identity(
        user_id=user,
        project_id=environ.get("HTTP_X_PROJECT_ID", own_project),
        roles=roles_in(environ, "HTTP_X_ROLES") if "HTTP_X_ROLES" in environ else own_roles,
        system_scope=system_scope,
        service_roles=roles_in(environ, "HTTP_X_SERVICE_ROLES"),
        domain_id=environ.get("HTTP_X_DOMAIN_ID") or None,
    )


def _is_local(environ: "WSGIEnvironment") -> bool:
    """Tell whether the peer is a unix socket (for which servers set an empty address) or a loopback address."""
    peer = environ.get("REMOTE_ADDR")
    if not peer:
        # A server that sets no address at all may be listening anywhere.
        return peer is not None
    try:
        address = ip_address(peer)
    except ValueError:
        return False
    if isinstance(address, IPv6Address) and address.ipv4_mapped:
        return address.ipv4_mapped.is_loopback
    return address.is_loopback


def roles_in(environ: "WSGIEnvironment", name: str) -> tuple[str, ...]:
    """Return the roles in a comma-separated header."""
    return tuple(role.strip() for role in environ.get(name, "").split(",") if role.strip())
