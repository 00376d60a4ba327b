"""The directory in which the processes of one server share their counts.

Every process writes files of its own there (``histogram_123.db``); whoever is asked adds them up.
"""

import os
import re
import tempfile
from pathlib import Path

from placement.errors import ConfigurationError

VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
"""Where prometheus_client looks for the directory; an operator may have set it as well."""

_LIVE = re.compile(r"gauge_live\w+_(?P<pid>\d+)\.db")


def shared_directory(configured: str | None) -> Path:
    """Return the directory, made if need be, and tell prometheus_client of it.

    Where none is named it is one in the directory for temporary files, named after the process group: all workers of
    a server are in one, which begins with their parent.

    Raises:
        ConfigurationError: it cannot be written, or belongs to somebody else.
    """
    group = f"placement-metrics-{os.geteuid()}-{os.getpgrp()}"
    path = Path(configured or os.environ.get(VARIABLE) or Path(tempfile.gettempdir()) / group)
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        owner = path.lstat().st_uid
    except OSError as error:
        raise ConfigurationError(f"[metrics] directory {path} cannot be used: {error.strerror}.") from error
    if path.is_symlink() or owner != os.geteuid() or not os.access(path, os.W_OK):
        raise ConfigurationError(f"[metrics] directory {path} must belong to the server's user.")
    os.environ[VARIABLE] = str(path)
    return path


def forget_the_dead(directory: Path) -> None:
    """Remove what processes that are no more said about their present; what they have counted stays."""
    for path in directory.glob("gauge_live*.db"):
        match = _LIVE.fullmatch(path.name)
        if match and not _lives(int(match["pid"])):
            path.unlink(missing_ok=True)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
