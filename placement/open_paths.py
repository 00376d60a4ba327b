"""Which paths are served to anybody, and which belong to the console."""

HEALTH_PATHS = frozenset({"/healthcheck", "/readycheck"})
OPEN_PATHS = HEALTH_PATHS | {"", "/"}
"""Version discovery, under a mount too, and health."""

CONSOLE_PATH = "/ui"
_CONSOLE_PAGES = f"{CONSOLE_PATH}/"
_STATIC_FILES = f"{CONSOLE_PATH}/static/"


def is_open(path: str) -> bool:
    """Tell whether a path is served to anybody; the console's stylesheet and scripts tell nothing about a cloud."""
    return path in OPEN_PATHS or path.startswith(_STATIC_FILES)


def is_console(path: str) -> bool:
    """Tell whether a page of the console is asked for."""
    return path == CONSOLE_PATH or path.startswith(_CONSOLE_PAGES)
