"""The server in process, as in the tests of the API."""

from tests.api.conftest import api, app

__all__ = ["api", "app"]
