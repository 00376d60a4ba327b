"""Options for commands that show a server's answer, or compute the same from the configured database."""

import re
from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import urlsplit

import click

Command = TypeVar("Command", bound=Callable[..., Any])


def _server(_context: click.Context, _option: click.Parameter, url: str | None) -> str | None:
    """Check that a URL names a server."""
    if url is not None and not _names_server(url):
        raise click.BadParameter(f"{url!r} is not the URL of a server, such as http://127.0.0.1:8778.")
    return url


def _names_server(url: str) -> bool:
    try:
        return urlsplit(url).port != 0 and re.fullmatch(r"https?://[^/\s]\S*", url) is not None
    except ValueError:  # half an IPv6 address, or a port that is not a number
        return False


def _token(_context: click.Context, _option: click.Parameter, token: str) -> str:
    """Check that a token can be sent."""
    if not (token.isascii() and token.isprintable()):
        raise click.BadParameter("A token consists of printable ASCII characters.")
    return token


def server_options(*, json_help: str = "Print the JSON document.") -> Callable[[Command], Command]:
    """Return a decorator that adds --url, --token and --json as arguments ``url``, ``token`` and ``as_json``."""
    options = (
        click.option("--url", callback=_server, help="Ask this server instead of reading the configured database."),
        click.option(
            "--token",
            envvar="OS_TOKEN",
            default="admin",
            callback=_token,
            help="The token for --url, or $OS_TOKEN.  [default: admin]",
        ),
        click.option("--json", "as_json", is_flag=True, help=json_help),
    )

    def decorated(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorated
