"""An in-memory directory for files that nobody will miss."""

import os
import shutil
from pathlib import Path

MEMORY = Path("/dev/shm")
ROOM_BYTES = 4 * 2**30
"""PostgreSQL writes up to a GiB of its log before it starts again, and each test process has a server."""


def memory() -> Path | None:
    """Return a directory in memory, or None, which stands for the usual one, where there is none with enough room.

    Programs may be run there, too: containers often forbid that.
    """
    if not os.access(MEMORY, os.W_OK | os.X_OK) or os.statvfs(MEMORY).f_flag & os.ST_NOEXEC:
        return None
    return MEMORY if shutil.disk_usage(MEMORY).free >= ROOM_BYTES else None
