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
    """Compile what stands between a process and its clock, or skip the test where there is no compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler (Debian: gcc, libc6-dev)")
    library = directory / "jumping_clock.so"
    subprocess.run([compiler, "-O2", "-Wall", "-Werror", "-shared", "-fPIC", "-o", library, SOURCE], check=True)
    return library


class Clock:
    """What a process and its children take for the time of day."""

    def __init__(self, path: Path, library: Path) -> None:
        self._path = path
        self._library = library
        path.write_bytes(OFFSET.pack(0))
        with path.open("r+b") as file:
            self._offset = mmap.mmap(file.fileno(), OFFSET.size)

    def jump(self, offset_s: int) -> None:
        """Be so many seconds ahead of the machine from now on; less than 0 is behind."""
        OFFSET.pack_into(self._offset, 0, offset_s)

    @property
    def variables(self) -> Mapping[str, str]:
        """What a process has to be started with."""
        return {"LD_PRELOAD": str(self._library), "JUMPING_CLOCK": str(self._path)}


def made_clocks(library: Path, count: int) -> list[Clock]:
    """Make some clocks beside their library."""
    files = [library.with_name(f"{new_uuid()}.offset") for _ in range(count)]
    return [Clock(file, library) for file in files]
