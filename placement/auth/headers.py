"""Reading what a request says about its caller from a WSGI environment."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wsgiref.types import WSGIEnvironment


OPEN_PATHS = frozenset({"", "/", "/healthcheck", "/readycheck"})


def is_open(environ: "WSGIEnvironment") -> bool:
    """Tell whether the path is served to everybody: version discovery (under a mount too) and health."""
    return environ.get("PATH_INFO", "") in OPEN_PATHS


def roles_in(environ: "WSGIEnvironment", name: str) -> tuple[str, ...]:
    """Return the names in a header that lists roles, separated by commas."""
    return tuple(role.strip() for role in environ.get(name, "").split(",") if role.strip())
