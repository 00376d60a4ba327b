"""Resource providers: the nodes of the trees that a cloud is made of."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Provider:
    """A resource provider as the database has it.

    ``parent_uuid`` is None and ``root_uuid`` its own for the root of a tree. ``modified`` is naive UTC, or None where
    nobody noted it.
    """

    id: int
    uuid: str
    name: str
    generation: int
    root_id: int
    root_uuid: str
    parent_id: int | None = None
    parent_uuid: str | None = None
    modified: datetime | None = None
