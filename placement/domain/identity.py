"""Who is calling: the result of authentication, whatever the strategy."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Identity:
    """A caller.

    ``system_scope`` is the value of the token's system scope (``"all"``) or None; a system-scoped caller has no
    project.
    """

    user_id: str
    project_id: str | None = None
    roles: tuple[str, ...] = ()
    system_scope: str | None = None
    service_roles: tuple[str, ...] = ()
