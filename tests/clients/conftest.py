"""One server for each way to authenticate, on a database of its own."""

from collections.abc import Iterator
from pathlib import Path

import bcrypt
import pytest

from tests import servers

USER, PASSWORD = "nova", "s3cret"


@pytest.fixture(scope="module")
def noauth2_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server that trusts what callers claim to be."""
    yield from _server(tmp_path_factory.mktemp("noauth2"), {})


@pytest.fixture(scope="module")
def http_basic_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server with one user, an administrator."""
    directory = tmp_path_factory.mktemp("http_basic")
    users = directory / "htpasswd"
    users.write_text(f"{USER}:{bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(4)).decode()}\n")
    sections = {
        "api": {"auth_strategy": "http_basic"},
        "http_basic": {"user_file": str(users), "user_roles": f"{USER}:admin"},
    }
    yield from _server(directory, sections)


def _server(directory: Path, sections: dict[str, dict[str, str]]) -> Iterator[str]:
    url = f"sqlite:///{directory / 'placement.sqlite'}"
    with servers.serving(directory, servers.default_sections(url) | sections) as server:
        yield server
