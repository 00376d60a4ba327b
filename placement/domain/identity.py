"""The caller, whatever the strategy of authentication, and the origin of a change as the journal records it."""

from contextvars import ContextVar
from dataclasses import dataclass

MAX_ORIGIN_LENGTH = 255
"""The number of characters of each field to keep."""


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


@dataclass(frozen=True, slots=True)
class Origin:
    """A request and its sender. ``route`` is its method and path pattern."""

    request_id: str
    user: str
    project: str
    route: str

    @property
    def parts(self) -> tuple[str, str, str, str]:
        """All fields in storable form: truncated, and without characters that a database might interpret."""
        return _plain(self.request_id), _plain(self.user), _plain(self.project), _plain(self.route)


CURRENT_ORIGIN: ContextVar[Origin | None] = ContextVar("placement_origin", default=None)
"""The request that this thread is serving, if it may change something; whoever serves requests sets it."""


def _plain(text: str) -> str:
    return "".join([letter for letter in text if letter.isprintable() and letter != "\\"])[:MAX_ORIGIN_LENGTH]
