"""An in-memory directory for temporary files."""

import os
import shutil
from pathlib import Path

MEMORY = Path("/dev/shm")
ROOM_BYTES = 4 * 2**30
"""PostgreSQL writes up to 1 GiB of log before it recycles it, and each test process has a server."""


def memory() -> Path | None:
    """Return a directory in memory, or None for the default one if there is none with enough room.

    It must allow running programs, which containers often forbid.
    """
    if not os.access(MEMORY, os.W_OK | os.X_OK) or os.statvfs(MEMORY).f_flag & os.ST_NOEXEC:
        return None
    return MEMORY if shutil.disk_usage(MEMORY).free >= ROOM_BYTES else None
