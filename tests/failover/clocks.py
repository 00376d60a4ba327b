"""Clocks that jump: a process sees the machine's time plus an offset that the test sets while it runs."""

import mmap
import shutil
import struct
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.claims import new_uuid

SOURCE = Path(__file__).with_name("jumping_clock.c")
OFFSET = struct.Struct("=q")


def compiled_library(directory: Path) -> Path:
    """Compile the library that intercepts a process's clock, or skip the test if there is no compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler (Debian: gcc, libc6-dev)")
    library = directory / "jumping_clock.so"
    subprocess.run([compiler, "-O2", "-Wall", "-Werror", "-shared", "-fPIC", "-o", library, SOURCE], check=True)
    return library


class Clock:
    """The time of day as seen by a process and its children."""

    def __init__(self, path: Path, library: Path) -> None:
        self._path = path
        self._library = library
        path.write_bytes(OFFSET.pack(0))
        with path.open("r+b") as file:
            self._offset = mmap.mmap(file.fileno(), OFFSET.size)

    def jump(self, offset_s: int) -> None:
        """Set the offset from the machine's clock, in seconds; negative values are behind."""
        OFFSET.pack_into(self._offset, 0, offset_s)

    @property
    def variables(self) -> Mapping[str, str]:
        """The environment variables for starting a process."""
        return {"LD_PRELOAD": str(self._library), "JUMPING_CLOCK": str(self._path)}


def made_clocks(library: Path, count: int) -> list[Clock]:
    """Create some clocks beside the library."""
    files = [library.with_name(f"{new_uuid()}.offset") for _ in range(count)]
    return [Clock(file, library) for file in files]
