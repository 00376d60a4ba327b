"""The caller: the result of authentication, independent of the strategy."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Identity:
    """A caller.

    ``system_scope`` is the token's system scope (``"all"``) or None; a system-scoped caller has no project.
    ``domain_id`` is set only for a domain-scoped token. The fields for domains and for the service that relays the call
    are known only with keystone; policy rules may refer to them.
    """

    user_id: str
    project_id: str | None = None
    roles: tuple[str, ...] = ()
    system_scope: str | None = None
    service_roles: tuple[str, ...] = ()
    domain_id: str | None = None
    user_domain_id: str | None = None
    project_domain_id: str | None = None
    service_user_id: str | None = None
    service_user_domain_id: str | None = None
    service_project_id: str | None = None
    service_project_domain_id: str | None = None
    is_admin_project: bool = True
