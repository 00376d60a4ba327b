"""Valid names for resource classes, traits and consumer types."""

import re

NAME_PATTERN = "[A-Z0-9_]+"
CUSTOM_PREFIX = "CUSTOM_"
CUSTOM_PATTERN = CUSTOM_PREFIX + NAME_PATTERN
MAX_NAME_LENGTH = 255
UNTYPED = "unknown"
"""The API's name for the type of consumers that have none."""


def is_custom(name: str) -> bool:
    """Tell whether a name is one that users may create and delete."""
    return name.startswith(CUSTOM_PREFIX)


def is_valid_custom(name: str) -> bool:
    """Tell whether a custom resource class or trait may have this name."""
    return len(name) <= MAX_NAME_LENGTH and re.fullmatch(CUSTOM_PATTERN, name) is not None
