"""Names: which are valid, which are similar to one that does not exist, and how clients may spell uuids."""

import re
import uuid
from collections.abc import Iterable
from difflib import get_close_matches

NAME_PATTERN = "[A-Z0-9_]+"
CUSTOM_PREFIX = "CUSTOM_"
CUSTOM_PATTERN = CUSTOM_PREFIX + NAME_PATTERN
MAX_NAME_LENGTH = 255
UNTYPED = "unknown"
"""The API's name for the type of consumers that have none."""

MAX_UUID_LENGTH = 36
"""The length of the tables' columns."""

MAX_SUGGESTED = 3


def is_custom(name: str) -> bool:
    """Tell whether a name is one that users may create and delete."""
    return name.startswith(CUSTOM_PREFIX)


def is_valid_custom(name: str) -> bool:
    """Tell whether a custom resource class or trait may have this name."""
    return len(name) <= MAX_NAME_LENGTH and re.fullmatch(CUSTOM_PATTERN, name) is not None


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


def similar_names(name: str, vocabulary: Iterable[str]) -> list[str]:
    """Return a few names with similar spelling, or with a word in common other than CUSTOM.

    >>> similar_names("VCPUS", ["VCPU", "PCPU", "PGPU"]), similar_names("ACCELERATOR_FPGA", ["FPGA", "VCPU"])
    (['VCPU', 'PCPU'], ['FPGA'])
    """
    names, words = sorted(vocabulary), {*name.split("_")} - {"CUSTOM"}
    related = [existing_name for existing_name in names if not words.isdisjoint(existing_name.split("_"))]
    return [*dict.fromkeys([*get_close_matches(name, names, n=MAX_SUGGESTED), *related])][:MAX_SUGGESTED]
