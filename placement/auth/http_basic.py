"""The strategy ``http_basic``: user names and passwords from a file, for servers without keystone."""

import binascii
from base64 import b64decode
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from placement.auth.htpasswd import PasswordFile
from placement.domain.identity import Identity
from placement.errors import ConfigurationError
from placement.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterable
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

CHALLENGE = ("WWW-Authenticate", 'Basic realm="placement", charset="UTF-8"')


class HttpBasic:
    """Authenticates users by password; each user's project has the user's name.

    Roles come from the configuration only: neither a header nor the password file can grant any.
    """

    def __init__(self, passwords: PasswordFile, roles: Mapping[str, tuple[str, ...]]) -> None:
        self._passwords = passwords
        self._roles = roles

    @classmethod
    def from_settings(cls, settings: Settings) -> "HttpBasic":
        """Return the strategy after reading its file once; raises ConfigurationError if that fails."""
        if not settings.http_basic_file:
            raise ConfigurationError("[api] auth_strategy is http_basic and [http_basic] user_file is not set.")
        passwords = PasswordFile(settings.http_basic_file)
        try:
            passwords.read()
        except OSError as error:
            raise ConfigurationError(f"[http_basic] user_file cannot be read: {error}") from error
        return cls(passwords, settings.http_basic_user_roles)

    def wrap(self, wsgi_app: "WSGIApplication") -> "WSGIApplication":
        """Wrap the application to add the challenge that HTTP requires to its 401 responses."""

        def challenging(environ: "WSGIEnvironment", start_response: "StartResponse") -> "Iterable[bytes]":
            def start(status: str, headers: list[tuple[str, str]], *exc_info: Any) -> Any:
                if status.startswith("401"):
                    headers = [*headers, CHALLENGE]
                return start_response(status, headers, *exc_info)

            return wsgi_app(environ, start)

        return challenging

    def identify(self, environ: "WSGIEnvironment") -> Identity | None:
        """Return the user whose name and password the request carries, or None."""
        credentials = _credentials(environ.get("HTTP_AUTHORIZATION", ""))
        if credentials is None:
            return None
        user, password = credentials
        if not self._passwords.accepts(user, password):
            return None
        return Identity(user_id=user, project_id=user, roles=self._roles.get(user, ()))


def _credentials(header: str) -> tuple[str, str] | None:
    scheme, _, encoded = header.partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        text = b64decode(encoded.strip(), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return None
    user, separator, password = text.partition(":")
    return (user, password) if separator and user else None
