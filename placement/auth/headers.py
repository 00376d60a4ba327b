"""Reading what a request says about its caller from a WSGI environment."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wsgiref.types import WSGIEnvironment


def roles_in(environ: "WSGIEnvironment", name: str) -> tuple[str, ...]:
    """Return the names in a header that lists roles, separated by commas."""
    return tuple(role.strip() for role in environ.get(name, "").split(",") if role.strip())
