"""Domain errors: what went wrong, in the API's terms, with the machine-readable ``code`` that clients match on.

A class's docstring is its default message. ``api/errors.py`` decides which HTTP status a class becomes. The codes other
than the default are fixed: clients of the reference (nova, neutron-lib, blazar) compare them.
"""

import inspect
from collections.abc import Iterable

UNDEFINED_CODE = "placement.undefined_code"
CONCURRENT_UPDATE = "placement.concurrent_update"


class PlacementError(Exception):
    """The request could not be carried out."""

    code = UNDEFINED_CODE

    def __init__(self, message: str | None = None, *, code: str | None = None) -> None:
        super().__init__(message or inspect.cleandoc(self.__doc__ or ""))
        if code is not None:
            self.code = code

    @property
    def message(self) -> str:
        """The message for the user."""
        return str(self.args[0])


class ConfigurationError(PlacementError):
    """The configuration cannot be used."""


class Invalid(PlacementError):
    """The request is not valid."""


class InvalidAt(Invalid):
    """A part of the request document is not valid."""

    def __init__(self, path: Iterable[str | int], sentence: str) -> None:
        """Refuse the part of a document at ``path``, the keys and positions that lead to it."""
        super().__init__(f"{json_path(path)}: {sentence}")


class Unauthorized(PlacementError):
    """The request needs authentication."""


class Forbidden(PlacementError):
    """The caller may not make this request."""


class NotFound(PlacementError):
    """The resource does not exist."""


class Gone(PlacementError):
    """The resource existed, and was deleted."""


class Conflict(PlacementError):
    """The request conflicts with the present state."""


class Unavailable(PlacementError):
    """The database cannot be reached or is too busy; try again."""

    retry_after_s: int | None = 1
    """When the client may retry; None if the same request would fail again."""


class OutOfSteps(Unavailable):
    """The search limit was reached before any candidate was found; make the request narrower."""

    retry_after_s = None


class ProviderNotFound(NotFound):
    """No resource provider has this uuid."""

    def __init__(self, uuid: str, *, purpose: str = "") -> None:
        super().__init__(f"No resource provider with uuid {uuid} found{purpose}")


class ConcurrentUpdate(Conflict):
    """Somebody else changed the resource at the same time."""

    code = CONCURRENT_UPDATE


class InventoryInUse(Conflict):
    """The inventory has allocations."""

    code = "placement.inventory.inuse"


class DuplicateName(Conflict):
    """The name or uuid is taken."""

    code = "placement.duplicate_name"


class ProviderInUse(Conflict):
    """The resource provider has allocations."""

    code = "placement.resource_provider.inuse"


class ProviderHasChildren(Conflict):
    """The resource provider has children."""

    code = "placement.resource_provider.cannot_delete_parent"


def json_path(path: Iterable[str | int]) -> str:
    """Return a path of keys and positions in JSON notation, ``groups._GPU[2]``; the document itself is "body"."""
    parts = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return parts.removeprefix(".") or "body"
