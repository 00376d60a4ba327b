"""Which paths need no credentials, and which belong to the console."""

HEALTH_PATHS = frozenset({"/healthcheck", "/readycheck"})
OPEN_PATHS = HEALTH_PATHS | {"", "/"}
"""Version discovery, also when mounted under a prefix, and health checks."""

CONSOLE_PATH = "/ui"
_CONSOLE_PAGES = f"{CONSOLE_PATH}/"
_STATIC_FILES = f"{CONSOLE_PATH}/static/"


def is_open(path: str) -> bool:
    """Tell whether a path needs no credentials. Static files of the console reveal nothing about a cloud."""
    return path in OPEN_PATHS or path.startswith(_STATIC_FILES)


def is_console(path: str) -> bool:
    """Tell whether a path is a page of the console."""
    return path == CONSOLE_PATH or path.startswith(_CONSOLE_PAGES)
