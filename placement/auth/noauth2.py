"""The strategy ``noauth2``: callers are who they claim to be. For development and tests only."""

from ipaddress import IPv6Address, ip_address
from typing import TYPE_CHECKING

from placement.auth.headers import roles_in
from placement.domain.identity import Identity
from placement.errors import Forbidden

if TYPE_CHECKING:
    from wsgiref.types import WSGIApplication, WSGIEnvironment


class NoAuth:
    """Takes the caller from the token, ``USER`` or ``USER:PROJECT``; ``admin`` has the role admin.

    Args:
        local_only: the strategy is in force only because nothing is configured, so it serves only callers on this
            machine, and none behind a proxy.
    """

    def __init__(self, *, local_only: bool = False) -> None:
        self._local_only = local_only

    def wrap(self, wsgi_app: "WSGIApplication") -> "WSGIApplication":
        """Return the application unchanged."""
        return wsgi_app

    def identify(self, environ: "WSGIEnvironment") -> Identity | None:
        """Return the caller named by the token; an empty token is a token, too."""
        if self._local_only and (not _is_local(environ) or _is_forwarded(environ)):
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


def _is_forwarded(environ: "WSGIEnvironment") -> bool:
    return any(name == "HTTP_FORWARDED" or name.startswith("HTTP_X_FORWARDED") for name in environ)
