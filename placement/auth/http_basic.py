"""The strategy ``http_basic``, for servers without keystone: passwords are bcrypt hashes in an htpasswd file.

The file is read again when it changes.
"""

import binascii
import hashlib
import hmac
import logging
import re
import secrets
import time
from base64 import b64decode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import bcrypt

from placement.domain.identity import Identity
from placement.errors import ConfigurationError
from placement.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterable
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

LOG = logging.getLogger(__name__)

BCRYPT = re.compile(rb"\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{53}")
BCRYPT_BYTES = 72
"""bcrypt uses only this many bytes of a password; the library rejects longer ones, while other tools truncate them."""

REMEMBERED_S = 60.0
MAX_REMEMBERED = 4096
DEFAULT_ROUNDS = 12

Hashes = Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class _Content:
    """The file's content at the time of its stamp."""

    stamp: tuple[int, int, int] | None
    hashes: Hashes
    decoy: bytes


class PasswordFile:
    """Checks passwords against an htpasswd file.

    Unknown user names cost as much work as known ones, so that timing does not reveal which names exist. A correct
    password is remembered for a minute as a keyed digest: bcrypt is slow by design, and clients send the password with
    every request. The digest covers the hash in the file, so a changed hash takes effect at once.
    """

    def __init__(self, path: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = Path(path)
        self._clock = clock
        self._key = secrets.token_bytes(32)
        self._remembered: dict[bytes, float] = {}
        self._content = _Content(None, {}, _decoy({}))

    def read(self) -> None:
        """Read the file now; raises OSError on failure."""
        stamp = self._stamp()
        hashes = _parse(self._path.read_bytes(), self._path)
        self._content = _Content(stamp, hashes, _decoy(hashes))

    def accepts(self, user: str, password: str) -> bool:
        """Tell whether the password is the user's."""
        self._refresh()
        content = self._content
        stored_hash = content.hashes.get(user)
        stored = stored_hash or content.decoy
        digest = self._digest(user, password, stored)
        if self._remembered.get(digest, 0.0) > self._clock():
            return True
        try:
            matches = bcrypt.checkpw(password.encode()[:BCRYPT_BYTES], stored)
        except ValueError:  # a NUL byte, or a hash with parameters that bcrypt rejects
            matches = False
        if is_right := matches and stored_hash is not None:
            if len(self._remembered) >= MAX_REMEMBERED:
                self._remembered = {}
            self._remembered[digest] = self._clock() + REMEMBERED_S
        return is_right

    def _refresh(self) -> None:
        """Reread the file if it has changed. A missing file admits nobody."""
        try:
            if self._stamp() != self._content.stamp:
                self.read()
        except OSError as error:
            if self._content.hashes:
                LOG.error("The password file cannot be read; all callers are refused: %s", error)
            self._content = _Content(None, {}, self._content.decoy)

    def _stamp(self) -> tuple[int, int, int]:
        status = self._path.stat()
        return status.st_mtime_ns, status.st_size, status.st_ino

    def _digest(self, user: str, password: str, stored: bytes) -> bytes:
        parts = (user.encode(), password.encode(), stored)
        lengths = b",".join(str(len(part)).encode() for part in parts)
        return hmac.digest(self._key, b"\0".join((lengths, *parts)), hashlib.sha256)


def _parse(text: bytes, path: Path) -> dict[str, bytes]:
    hashes: dict[str, bytes] = {}
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.strip()
        if not line or line.startswith(b"#"):
            continue
        user, _, stored = line.partition(b":")
        if BCRYPT.fullmatch(stored):
            hashes.setdefault(user.decode(errors="replace"), stored)
        else:
            LOG.warning("%s line %d is ignored: only bcrypt hashes are supported (htpasswd -B)", path, number)
    return hashes


def _decoy(hashes: Hashes) -> bytes:
    """Return a hash that no password matches, as costly as the costliest in the file."""
    rounds = max((int(stored[4:6]) for stored in hashes.values()), default=DEFAULT_ROUNDS)
    return bcrypt.gensalt(rounds) + b"." * 31


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
