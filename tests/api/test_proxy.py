"""Behind a proxy, links carry the address that clients see; forwarded headers are trusted only if configured."""

import dataclasses

import pytest

from placement.app import create_app
from placement.settings import DatabaseSettings, Settings
from tests.api.conftest import Api

PROVIDER = {"name": "compute1", "uuid": "5d9e2f37-0f0d-4c1f-8a15-1d7d3a6a2c11"}
FORWARDED = {
    "X-Forwarded-Proto": "https",
    "X-Forwarded-Host": "cloud.example.com",
    "X-Forwarded-Prefix": "/placement",
    "X-Forwarded-For": "192.0.2.7",
}


@pytest.mark.parametrize(
    ("believed", "location"),
    [
        (True, f"https://cloud.example.com/placement/resource_providers/{PROVIDER['uuid']}"),
        (False, f"http://localhost/resource_providers/{PROVIDER['uuid']}"),
    ],
    ids=["believed", "not believed"],
)
def test_the_location_is_the_one_that_the_client_can_follow(sqlite_url: str, believed: bool, location: str):
    settings = Settings(database=DatabaseSettings(connection=sqlite_url), auth_strategy="noauth2")
    app = create_app(dataclasses.replace(settings, proxy_headers_parsing=believed))
    answer = Api(app).post("/resource_providers", PROVIDER, headers=FORWARDED)
    app.extensions["placement"].database.dispose()
    assert (answer.status_code, answer.headers["Location"]) == (200, location)
