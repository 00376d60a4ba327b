"""Spellings of uuids: clients may send any, and the tables store what was sent as long as it fits."""

import re
import uuid
from collections.abc import Iterable

MAX_UUID_LENGTH = 36
"""The length of the tables' columns."""


def is_uuid_like(value: str) -> bool:
    """Tell whether a string is a uuid in any of the usual spellings, with or without dashes."""
    bare = value.replace("urn:", "").replace("uuid:", "").strip("{}").replace("-", "").lower()
    return re.fullmatch("[0-9a-f]{32}", bare) is not None


def canonical_uuid(value: str) -> str:
    """Return the dashed lower-case spelling of a string that ``is_uuid_like``."""
    return str(uuid.UUID(value))


def fitting_uuid(value: str) -> str:
    """Return a uuid as sent if it fits the columns, else (``urn:uuid:``, extra dashes) in its canonical spelling."""
    return value if len(value) <= MAX_UUID_LENGTH else canonical_uuid(value)


def both_spellings(uuids: Iterable[str]) -> frozenset[str]:
    """Return uuids as sent and as this server writes them; other writers may have written them as sent."""
    return frozenset(spelling for sent in uuids for spelling in (sent, canonical_uuid(sent)))
