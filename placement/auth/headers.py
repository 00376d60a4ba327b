"""Reading what a request says about its caller from a WSGI environment."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wsgiref.types import WSGIEnvironment


OPEN_PATHS = frozenset({"", "/", "/healthcheck", "/readycheck"})
CONSOLE_PATH = "/ui"
OPEN_DIRECTORY = f"{CONSOLE_PATH}/static/"
"""The console's stylesheet and scripts; they tell nothing about a cloud."""


def is_open(environ: "WSGIEnvironment") -> bool:
    """Tell whether the path is served to everybody: version discovery (under a mount too), health, static files."""
    path: str = environ.get("PATH_INFO", "")
    return path in OPEN_PATHS or path.startswith(OPEN_DIRECTORY)


def is_console(environ: "WSGIEnvironment") -> bool:
    """Tell whether a page of the console is asked for."""
    path: str = environ.get("PATH_INFO", "")
    return path == CONSOLE_PATH or path.startswith(f"{CONSOLE_PATH}/")


def roles_in(environ: "WSGIEnvironment", name: str) -> tuple[str, ...]:
    """Return the names in a header that lists roles, separated by commas."""
    return tuple(role.strip() for role in environ.get(name, "").split(",") if role.strip())
