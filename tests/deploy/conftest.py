"""A configuration on PostgreSQL, and one that the users of system services can read."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import servers
from tests.databases import SQLiteDatabases

PROXY = {"oslo_middleware": {"enable_proxy_headers_parsing": "true"}}
SERVICE_USER = "www-data"
"""The user that Apache and nginx switch to when started by root."""


@pytest.fixture
def configured(tmp_path: Path, postgresql_url: str) -> Path:
    """A directory with placement.conf."""
    servers.write_configuration(tmp_path, servers.default_sections(postgresql_url) | PROXY)
    return tmp_path


@pytest.fixture
def open_directory(sqlite_databases: SQLiteDatabases) -> Iterator[Path]:
    """A directory with placement.conf and a database file; it belongs to the user that services switch to."""
    directory = Path(tempfile.mkdtemp(prefix="placement-"))
    url = sqlite_databases.copy(directory)
    servers.write_configuration(directory, servers.default_sections(url) | PROXY)
    if os.geteuid() == 0:
        directory.chmod(0o755)
        for path in (directory, *directory.iterdir()):
            shutil.chown(path, SERVICE_USER, SERVICE_USER)
    yield directory
    shutil.rmtree(directory)
