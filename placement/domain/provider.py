"""Resource providers: the nodes of a cloud's trees."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Provider:
    """A resource provider as stored. A root has no parent and is its own root; ``modified`` is naive UTC."""

    id: int
    uuid: str
    name: str
    generation: int
    root_id: int
    root_uuid: str
    parent_id: int | None = None
    parent_uuid: str | None = None
    modified: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderFilter:
    """Which providers to list. All conditions must hold, each for the provider alone.

    It must have a trait of each set in ``required``, be in an aggregate of each set in ``member_of``, and match nothing
    that is forbidden. ``in_tree`` is the uuid of any provider of its tree.
    """

    name: str | None = None
    uuid: str | None = None
    in_tree: str | None = None
    resources: Mapping[str, int] = field(default_factory=dict)
    required: Sequence[frozenset[str]] = ()
    forbidden: frozenset[str] = frozenset()
    member_of: Sequence[frozenset[str]] = ()
    forbidden_aggregates: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Move:
    """Where to move a provider with its subtree: under another one, or (None) to the root of a tree of its own.

    Unless ``from_anywhere``, only a provider that has no parent yet may move.
    """

    parent_uuid: str | None
    from_anywhere: bool
