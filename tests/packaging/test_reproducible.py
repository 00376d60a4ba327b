"""The wheel and the source archive are the same bytes wherever and whenever they are built."""

import shutil
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from tests.packaging.conftest import SOURCE, copied_source
from tests.servers import plain_environment

MOMENT = "1795305600"


@pytest.mark.parametrize("kind", ["wheel", "sdist"])
def test_two_builds_are_the_same_bytes(kind: str, tmp_path: Path) -> None:
    """In other directories, with files of another time."""
    builds = []
    for name in ("one", "another"):
        source = tmp_path / name / "source"
        source.mkdir(parents=True)
        copied_source(source)
        (source / "README.md").touch()
        builds.append(built(kind, source, tmp_path / name / "dist"))
    assert builds[0] == builds[1]


def built(kind: str, source: Path, target: Path) -> tuple[str, str]:
    """Return the name and the digest of what the build makes."""
    program = f"from setuptools import build_meta; build_meta.build_{kind}({str(target)!r})"
    target.mkdir()
    variables = plain_environment("PYTHONPATH", "PYTHONHOME") | {"SOURCE_DATE_EPOCH": MOMENT}
    command = [sys.executable, "-c", program]
    subprocess.run(command, cwd=source, env=variables, check=True, capture_output=True)
    (made,) = target.iterdir()
    return made.name, sha256(made.read_bytes()).hexdigest()


def test_the_source_archive_builds_the_same_package(tmp_path: Path) -> None:
    """What an archive left out would be missing from the wheel that distributions build of it."""
    source, dist = tmp_path / "source", tmp_path / "dist"
    source.mkdir()
    copied_source(source)
    name, _ = built("sdist", source, dist)
    shutil.unpack_archive(dist / name, tmp_path / "unpacked", filter="data")
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    direct, indirect = tmp_path / "direct", tmp_path / "indirect"
    assert built("wheel", source, direct) == built("wheel", unpacked, indirect)
    assert (SOURCE / "LICENSE").read_bytes() == (unpacked / "LICENSE").read_bytes()
