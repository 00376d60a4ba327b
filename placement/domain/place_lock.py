"""Locks of places: whoever has taken all of a place's lock class holds it exclusively, with everything below."""

from typing import NamedTuple


class PlaceLock(NamedTuple):
    """The lock of a level.

    Args:
        resource_class: the class that places of the level have inventory of.
        trait: the trait that makes a provider a place of the level; None if every provider is one.
    """

    resource_class: str
    trait: str | None
