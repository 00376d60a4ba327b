"""What places have as a lock: whoever has taken all of it holds the place, and everything below it."""

from typing import NamedTuple


class PlaceLock(NamedTuple):
    """The lock of a level.

    Args:
        resource_class: of which the places of the level have an inventory.
        trait: what makes a provider a place of the level; None for any provider itself.
    """

    resource_class: str
    trait: str | None
