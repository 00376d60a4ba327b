"""Valid names for resource classes, traits and consumer types."""

import re

NAME_PATTERN = "[A-Z0-9_]+"
CUSTOM_PREFIX = "CUSTOM_"
CUSTOM_PATTERN = CUSTOM_PREFIX + NAME_PATTERN
LONGEST_NAME = 255


def is_custom(name: str) -> bool:
    """Tell whether a name is one that users may create and delete."""
    return name.startswith(CUSTOM_PREFIX)


def is_valid_custom(name: str) -> bool:
    """Tell whether a custom resource class or trait may have this name."""
    return len(name) <= LONGEST_NAME and re.fullmatch(CUSTOM_PATTERN, name) is not None
