"""Who is at work: what the journal tells of the request that changes something."""

from contextvars import ContextVar
from dataclasses import dataclass

LONGEST = 255
"""Characters that are kept of each."""


@dataclass(frozen=True, slots=True)
class Origin:
    """A request, and who sent it. ``route`` is its method and the pattern of its path."""

    request_id: str
    user: str
    project: str
    route: str

    @property
    def parts(self) -> tuple[str, str, str, str]:
        """All of it, fit to be kept: no character is in it that a database might take for something else."""
        return _plain(self.request_id), _plain(self.user), _plain(self.project), _plain(self.route)


AT_WORK: ContextVar[Origin | None] = ContextVar("placement_origin", default=None)
"""The request that this thread is serving, if it may change something; whoever serves requests sets it."""


def _plain(text: str) -> str:
    return "".join([one for one in text if one.isprintable() and one != "\\"])[:LONGEST]
