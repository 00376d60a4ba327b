"""The wheel and the source archive are the same bytes wherever and whenever they are built."""

import subprocess
import sys
import tarfile
from hashlib import sha256
from pathlib import Path

import pytest

from tests.packaging.conftest import SOURCE, copied_source
from tests.servers import plain_environment

MOMENT = "1795305600"


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """What is built from one copy of the source."""
    directory = tmp_path_factory.mktemp("one")
    return {kind: built(kind, copied(directory / kind), directory) for kind in ("wheel", "sdist")}


@pytest.mark.parametrize("kind", ["wheel", "sdist"])
def test_two_builds_are_the_same_bytes(kind: str, builds: dict[str, Path], tmp_path: Path) -> None:
    """Built in different directories, from files with different timestamps."""
    assert identity(built(kind, copied(tmp_path / "source"), tmp_path)) == identity(builds[kind])


def test_the_source_archive_builds_the_same_package(builds: dict[str, Path], tmp_path: Path) -> None:
    """A file missing from the archive would be missing from the wheel that distributions build from it."""
    with tarfile.open(builds["sdist"]) as archive:
        archive.extraction_filter = lambda member, _path: member  # Python 3.11.2 has no filter, 3.12 requires one.
        archive.extractall(tmp_path / "unpacked")
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    assert identity(built("wheel", unpacked, tmp_path)) == identity(builds["wheel"])
    assert (SOURCE / "LICENSE").read_bytes() == (unpacked / "LICENSE").read_bytes()


def copied(source: Path) -> Path:
    """Return a copy of the source, with a newly created file."""
    source.mkdir()
    copied_source(source)
    (source / "README.md").touch()
    return source


def built(kind: str, source: Path, above: Path) -> Path:
    """Return the file that the build of a source creates."""
    target = above / f"dist-{kind}"
    program = f"from setuptools import build_meta; build_meta.build_{kind}({str(target)!r})"
    target.mkdir()
    variables = plain_environment("PYTHONPATH", "PYTHONHOME") | {"SOURCE_DATE_EPOCH": MOMENT}
    command = [sys.executable, "-c", program]
    subprocess.run(command, cwd=source, env=variables, check=True, capture_output=True)
    (made,) = target.iterdir()
    return made


def identity(file: Path) -> tuple[str, str]:
    """Return a file's name and the digest of its content."""
    return file.name, sha256(file.read_bytes()).hexdigest()
