"""Who visits the console, what the visitor may see, and the headers that protect pages from other sites.

No page changes anything and none accepts anything but GET and HEAD, so there is nothing to gain from CSRF.
"""

from collections.abc import Iterable
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from flask import Request, Response

from placement.api.call import Call
from placement.auth.strategy import AuthStrategy
from placement.domain.identity import Identity
from placement.errors import Forbidden, Invalid
from placement.settings import Settings

HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}

TOKEN_HEADER = "HTTP_X_AUTH_TOKEN"  # noqa: S105 - the name of a header


class Visitors:
    """The configured strategy; under noauth2, where browsers have no token to send, visitors are the admin.

    noauth2 makes anybody who claims it the admin. If it was not chosen explicitly and only this machine is served, a
    foreign page must not be able to read the console through a visitor's browser and a host name that resolves to this
    machine (DNS rebinding): the Host header must name this machine itself.
    """

    def __init__(self, strategy: AuthStrategy, settings: Settings) -> None:
        self._strategy = strategy
        self._admits_all = settings.auth_strategy == "noauth2"
        self._local_only = settings.auth_is_implicit

    def identify(self, environ: dict[str, Any]) -> Identity | None:
        """Return the caller, or None if the credentials are missing or wrong."""
        if self._admits_all and TOKEN_HEADER not in environ:
            if self._local_only and not _names_this_machine(environ.get("HTTP_HOST", "")):
                raise Forbidden(
                    "No authentication is configured, so the console is served at http://localhost and "
                    "http://127.0.0.1 only. Set [api] auth_strategy to serve others."
                )
            environ = {**environ, TOKEN_HEADER: "admin"}
        return self._strategy.identify(environ)


def _names_this_machine(host: str) -> bool:
    try:
        name = urlsplit(f"//{host}").hostname or ""
        return name == "localhost" or ip_address(name).is_loopback
    except ValueError:
        return False


def authorize(call: Call, rules: Iterable[str]) -> None:
    """Raise Forbidden unless the caller passes every rule."""
    for rule in rules:
        call.authorize(rule)


def allows(call: Call, rules: Iterable[str]) -> bool:
    """Tell whether the caller passes every rule."""
    return all(call.is_allowed(rule) for rule in rules)


def refuse_nul(request: Request) -> None:
    """Raise Invalid if a value of the query string contains NUL, which database text cannot hold."""
    if any("\0" in value for values in request.args.listvalues() for value in values):
        raise Invalid("The query string contains a NUL character.")


def secure(response: Response) -> Response:
    """Add the headers of every console response."""
    for name, value in HEADERS.items():
        response.headers[name] = value
    if response.mimetype == "text/html":
        response.headers["cache-control"] = "no-store"
    return response
