"""Reading what the WSGI environment says about a request's caller."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wsgiref.types import WSGIEnvironment


def roles_in(environ: "WSGIEnvironment", name: str) -> tuple[str, ...]:
    """Return the roles in a comma-separated header."""
    return tuple(role.strip() for role in environ.get(name, "").split(",") if role.strip())
