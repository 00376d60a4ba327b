"""The programs that serve: located where they are installed, otherwise the test is skipped with the package's name."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.deploy.samples import sample

MODULES = Path("/usr/lib/apache2/modules")
PLUGINS = Path("/usr/lib/uwsgi/plugins")
PATH = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])


def program(name: str, package: str) -> str:
    """Return the path of a program."""
    found = shutil.which(name, path=PATH)
    if found is None:
        pytest.skip(f"there is no {name} (Debian: {package})")
    return found


@dataclass(frozen=True, slots=True)
class Uwsgi:
    """The program, and the options that make it find the environment of the tests."""

    path: str
    options: dict[str, str]

    def file(self, text: str) -> str:
        """Return an options file with its own options, too."""
        return text + _lines(self.options)

    def sample(self, listens: Mapping[str, str]) -> str:
        """Return the sample with another address."""
        return sample(
            "uwsgi/placement-api.ini",
            ("plugins = python3\n", _lines(self.options)),
            ("virtualenv = /opt/placement\n", "\n"),
            ("http-socket = 127.0.0.1:8778\n", _lines(listens)),
        )


def _lines(options: Mapping[str, str]) -> str:
    return "".join(f"{name} = {value}\n" for name, value in options.items())


def uwsgi() -> Uwsgi:
    """Return the uWSGI of this environment, or Debian's if this environment uses Debian's Python."""
    of_pip = Path(sys.prefix) / "bin" / "pyuwsgi"
    if of_pip.exists():
        return Uwsgi(str(of_pip), {"virtualenv": sys.prefix})
    of_debian = shutil.which("uwsgi", path=PATH)
    if of_debian and sys.base_prefix == "/usr" and _is_for_this_python(PLUGINS / "python3_plugin.so"):
        return Uwsgi(of_debian, {"plugins": "http,python3", "virtualenv": sys.prefix})
    pytest.skip("there is no uWSGI for this Python (pip: pyuwsgi; Debian: uwsgi-core, uwsgi-plugin-python3)")


def mod_wsgi() -> Path:
    """Return the path of mod_wsgi, if it is built for this Python."""
    module = MODULES / "mod_wsgi.so"
    if not _is_for_this_python(module):
        pytest.skip("there is no mod_wsgi for this Python (Debian: libapache2-mod-wsgi-py3)")
    return module


def _is_for_this_python(library: Path) -> bool:
    """Return whether a library embeds the version of Python that runs the tests."""
    if not library.exists():
        return False
    wants = subprocess.run(["ldd", str(library)], capture_output=True, text=True, check=True).stdout
    return f"libpython{sys.version_info.major}.{sys.version_info.minor}." in wants
