"""The origin of a change: what the journal records about the request that makes it."""

from contextvars import ContextVar
from dataclasses import dataclass

MAX_LENGTH = 255
"""The number of characters of each field to keep."""


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
    return "".join([one for one in text if one.isprintable() and one != "\\"])[:MAX_LENGTH]
