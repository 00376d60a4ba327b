"""Where the answers that commands show come from: a server by its URL, or one in this process on the database."""

import http.client
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, urlsplit

import click

from placement.cli.configuration import chosen_settings, configured, readable
from placement.cli.output import listed
from placement.errors import ConfigurationError, PlacementError, Unavailable
from placement.settings import with_own_database
from placement.store.lifecycle import schema

if TYPE_CHECKING:
    from wsgiref.types import WSGIApplication

TIMEOUT_S = 60
MICROVERSION = "1.39"
NOT_ENCODED = "/?#[]@!$&'()*+,;=:%~"
"""Characters of a path that have a meaning there, or begin an encoded character."""

Command = TypeVar("Command", bound=Callable[..., Any])


class RequestRefused(PlacementError):
    """The server refused a request."""


class Client:
    """Sends requests to one server, by default as the ``noauth2`` administrator, and counts them."""

    def __init__(self, url: str, *, token: str = "admin", microversion: str = MICROVERSION) -> None:  # noqa: S107
        parts = urlsplit(url)
        self._connection = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self._address = parts.netloc
        self._mounted_at = parts.path.rstrip("/")
        self._headers = {
            "X-Auth-Token": token,
            "OpenStack-API-Version": f"placement {microversion}",
            "Accept": "application/json",
        }
        self.requests = 0

    def __call__(self, method: str, path: str, body: object = None) -> Any:
        """Send a request and return the parsed response body, or None if it is empty.

        Raises:
            RequestRefused: the response is an error.
            Unavailable: there is no response.
        """
        self.requests += 1
        headers = self._headers if body is None else {**self._headers, "Content-Type": "application/json"}
        encoded = None if body is None else json.dumps(body).encode()
        status, content = self._send(method, quote(path, safe=NOT_ENCODED), encoded, headers)
        if status >= http.HTTPStatus.BAD_REQUEST:
            raise RequestRefused(f"{method} {path} answered {status}: {refusal(content)}")
        return json.loads(content) if content else None

    def _send(self, method: str, path: str, content: bytes | None, headers: dict[str, str]) -> tuple[int, bytes]:
        connection = self._connection(self._address, timeout=TIMEOUT_S)
        try:
            connection.request(method, quote(self._mounted_at, safe=NOT_ENCODED) + path, content, headers)
            response = connection.getresponse()
            return response.status, response.read()
        except OSError as error:
            raise Unavailable(f"The server cannot be reached: {error}") from error
        finally:
            connection.close()


class LocalClient(Client):
    """Sends requests to an application in this process."""

    def __init__(self, app: "WSGIApplication", *, microversion: str = MICROVERSION) -> None:
        from werkzeug.test import Client as WsgiClient  # noqa: PLC0415 - large, and needless with --url

        super().__init__("", microversion=microversion)
        self._client = WsgiClient(app)

    def _send(self, method: str, path: str, content: bytes | None, headers: dict[str, str]) -> tuple[int, bytes]:
        environ = {"REMOTE_ADDR": "127.0.0.1"}
        response = self._client.open(path, method=method, data=content, headers=headers, environ_base=environ)
        return response.status_code, response.data


@contextmanager
def answering(*, microversion: str = MICROVERSION, writes: bool = False) -> Iterator[Client]:
    """Yield a client of the server in --url; without it, of the configured database, as its administrator.

    The database may also belong to a running openstack-placement, unless the command ``writes`` to it.

    Raises:
        ConfigurationError: there is no database, or it has no tables, or not those of this release to write to.
    """
    if (url := chosen_url()) is not None:
        yield Client(url, token=click.get_current_context().meta["--token"], microversion=microversion)
        return
    settings = with_own_database(chosen_settings())
    local = replace(
        settings,
        source=None,  # and so the policy by default
        auth_strategy="noauth2",
        auth_is_implicit=True,
        planner_api=replace(settings.planner_api, enabled=True),
        ui=replace(settings.ui, enabled=False),
        metrics=replace(settings.metrics, enabled=False),
        journal=replace(settings.journal, keep_days=0),  # a server prunes it, this only reads
    )
    with readable(settings) as database:
        if writes and not schema.current(database.engine).is_up_to_date:
            raise ConfigurationError("The schema is not that of this release: run 'placement db upgrade' first.")
        from placement.app import create_app  # noqa: PLC0415 - large, and needless with --url

        yield LocalClient(create_app(local, database=database), microversion=microversion)


def refusal(content: bytes) -> str:
    """Return the message of an error response, without the JSON around it."""
    try:
        detail = str(json.loads(content)["errors"][0]["detail"])
    except (ValueError, LookupError, TypeError):  # The response comes from something else, such as a proxy.
        return content.decode(errors="replace")
    # Before the blank line is the general sentence of the status.
    return detail.strip().split("\n\n", 1)[-1]


def chosen_url() -> str | None:
    """Return the server that the running command was told to ask; None for the configured database."""
    url: str | None = click.get_current_context().meta["--url"]
    return url


def _remember_url(context: click.Context, _option: click.Parameter, url: str | None) -> None:
    try:
        # A port that is not a number raises, and so does half an IPv6 address.
        is_good = url is None or (urlsplit(url).port != 0 and re.fullmatch(r"https?://[^/\s]\S*", url))
    except ValueError:
        is_good = False
    if not is_good:
        raise click.BadParameter(f"{url!r} is not the URL of a server, such as http://127.0.0.1:8778.")
    context.meta["--url"] = url


def _remember_token(context: click.Context, _option: click.Parameter, token: str) -> None:
    if not (token.isascii() and token.isprintable()):
        raise click.BadParameter("A token consists of printable ASCII characters.")
    context.meta["--token"] = token


def server_options(command: Command) -> Command:
    """Add --url and --token to a command that calls ``answering``."""
    token = click.option(
        "--token",
        envvar="OS_TOKEN",
        default="admin",
        callback=_remember_token,
        expose_value=False,
        help="The token for --url, or $OS_TOKEN.  [default: admin]",
    )
    url = click.option(
        "--url",
        callback=_remember_url,
        expose_value=False,
        help="Ask this server instead of reading the configured database.",
    )
    return url(token(command))


def answered(command: Command) -> Command:
    """Add what a command has that prints an answer: the server or the configuration, and the format."""
    return server_options(listed(configured(command)))
