"""The directory in which the processes of one server share their counters.

Each process writes its own files there (``histogram_123.db``); the process that is scraped adds them up.
"""

import errno
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

from placement.errors import ConfigurationError

VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
"""prometheus_client's variable for the directory; the operator may have set it, too."""

FULL = frozenset({errno.ENOSPC, errno.EDQUOT})

_LIVE = re.compile(r"gauge_live\w+_(?P<pid>\d+)\.db")


def shared_directory(configured: str | None) -> Path:
    """Return the directory, creating it if necessary, and point prometheus_client to it.

    By default it is named after the process group, which the workers of a server share with their parent. If the disk
    is too full for it, the server goes on without.

    Raises:
        ConfigurationError: it is not writable, or belongs to another user.
    """
    group = f"placement-metrics-{os.geteuid()}-{os.getpgrp()}"
    path = Path(configured or os.environ.get(VARIABLE) or runtime_directory() / group)
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        owner = path.lstat().st_uid
    except OSError as error:
        if error.errno in FULL:
            os.environ[VARIABLE] = str(path)
            return path
        raise ConfigurationError(f"[metrics] directory {path} cannot be used: {error.strerror}.") from error
    if path.is_symlink() or owner != os.geteuid() or not os.access(path, os.W_OK):
        raise ConfigurationError(f"[metrics] directory {path} must belong to the server's user.")
    os.environ[VARIABLE] = str(path)
    return path


def runtime_directory() -> Path:
    """Return the directory for this run's files: the service's own (systemd: RuntimeDirectory=), or the user's."""
    for variable in ("RUNTIME_DIRECTORY", "XDG_RUNTIME_DIR"):
        path = Path(os.environ.get(variable, "").partition(":")[0])
        if path.is_absolute() and os.access(path, os.W_OK):
            return path
    return Path(tempfile.gettempdir())


def forget_the_dead(directory: Path) -> None:
    """Remove the live gauges of processes that have exited; their counters stay."""
    for path, pid in _live_gauges(directory):
        if not _lives(pid):
            path.unlink(missing_ok=True)


def living_processes(directory: Path) -> list[int]:
    """Return the ids of the processes that count there, once the dead are forgotten."""
    return sorted({pid for _, pid in _live_gauges(directory)})


def _live_gauges(directory: Path) -> Iterator[tuple[Path, int]]:
    for path in directory.glob("gauge_live*.db"):
        if match := _LIVE.fullmatch(path.name):
            yield path, int(match["pid"])


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError as error:
        return isinstance(error, PermissionError)
    return True
