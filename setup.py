"""Packaging beyond what pyproject.toml can say: where migrations/ goes, and a source archive that is reproducible."""

import gzip
import os
import shutil
import tarfile
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist


class CleanBuild(build_py):
    """Builds from nothing: what an earlier build in the same checkout left there would be installed as well."""

    def run(self) -> None:
        """Copy the modules."""
        shutil.rmtree(Path(self.build_lib, "placement"), ignore_errors=True)
        super().run()


class ReproducibleArchive(sdist):
    """With SOURCE_DATE_EPOCH set, the archive is the same bytes wherever and whenever it is built."""

    def make_archive(self, *args: object, **options: object) -> str:
        """Write the archive; everything in it is of one moment and one owner, in the order of the names."""
        made: str = super().make_archive(*args, **options)
        moment = os.environ.get("SOURCE_DATE_EPOCH")
        if moment and made.endswith(".tar.gz"):
            _rewrite(Path(made), int(moment))
        return made


def _rewrite(archive: Path, moment: int) -> None:
    with tarfile.open(archive) as source:
        contents = [(member, source.extractfile(member)) for member in sorted(source, key=lambda member: member.name)]
        with (
            gzip.GzipFile(archive.with_suffix(".new"), "wb", mtime=moment) as compressed,
            tarfile.open(fileobj=compressed, mode="w", format=tarfile.PAX_FORMAT) as target,
        ):
            for member, content in contents:
                member.mtime, member.uid, member.gid, member.uname, member.gname = moment, 0, 0, "", ""
                member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
                member.pax_headers = {}
                target.addfile(member, content)
    archive.with_suffix(".new").replace(archive)


setup(
    packages=[*find_packages(include=["placement*"]), "placement.migrations", "placement.migrations.versions"],
    package_dir={"placement.migrations": "migrations"},
    cmdclass={"build_py": CleanBuild, "sdist": ReproducibleArchive},
)
