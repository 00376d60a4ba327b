"""The caller, whatever the strategy of authentication, and the request that is being served."""

import re
from contextvars import ContextVar
from dataclasses import dataclass

MAX_ORIGIN_LENGTH = 255
"""The number of characters of each field to keep."""


@dataclass(frozen=True, slots=True)
class Identity:
    """A caller; a system-scoped one, of ``system_scope`` "all", has no project.

    Domains, and the service that relays the call, are known only with keystone; policy rules may refer to them.
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
class ServedRequest:
    """A request, as log lines and the journal tell of it.

    ``global_request_id`` is the client's own id. ``route``, method and path pattern, is known if the request may change
    something.
    """

    request_id: str
    global_request_id: str | None = None
    identity: Identity | None = None
    route: str | None = None


CURRENT_REQUEST: ContextVar[ServedRequest | None] = ContextVar("placement_request", default=None)
"""The request that this thread is serving; whoever serves requests sets it."""

_SENT_ID = re.compile(r"req-[0-9a-fA-F-]{36}")


def serve_request(
    request_id: str, sent_id: str | None, identity: Identity | None = None, route: str | None = None
) -> None:
    """Attach this thread's log lines and changes to a request; a client's id of an unusual form is left out."""
    sent = sent_id if sent_id and _SENT_ID.fullmatch(sent_id) else None
    CURRENT_REQUEST.set(ServedRequest(request_id, sent, identity, route))


def current_origin() -> tuple[str, str, str, str] | None:
    """Return what the journal records of the request that this thread serves: id, user, project and route.

    They are truncated, and without characters that a database might interpret. None if it may change nothing.
    """
    request = CURRENT_REQUEST.get()
    if request is None or request.identity is None or request.route is None:
        return None
    caller = request.identity
    return _plain(request.request_id), _plain(caller.user_id), _plain(caller.project_id or ""), _plain(request.route)


def _plain(text: str) -> str:
    return "".join([letter for letter in text if letter.isprintable() and letter != "\\"])[:MAX_ORIGIN_LENGTH]
