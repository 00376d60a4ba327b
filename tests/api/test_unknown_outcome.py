"""If the connection breaks during a commit, the outcome is unknown, and the client is told so."""

from collections.abc import Iterator

import pytest

from placement.app import create_app
from placement.settings import DatabaseSettings, Settings
from tests.api.conftest import Api
from tests.api.severed import Severed, severed
from tests.claims import new_uuid

BEFORE, AFTER = False, True


@pytest.fixture(params=["postgresql", pytest.param("mariadb", marks=pytest.mark.mariadb)])
def url(request: pytest.FixtureRequest) -> str:
    found: str = request.getfixturevalue(f"{request.param}_url")
    return found


@pytest.fixture(params=[BEFORE, AFTER], ids=["before", "after"])
def way(url: str, request: pytest.FixtureRequest) -> Iterator[tuple[Severed, str]]:
    with severed(url, after=request.param) as made:
        yield made


@pytest.fixture
def api(way: tuple[Severed, str]) -> Iterator[Api]:
    application = create_app(Settings(database=DatabaseSettings(connection=way[1]), auth_strategy="noauth2"))
    yield Api(application)
    application.extensions["placement"].database.dispose()


def test_the_client_is_told_to_look_and_the_change_is_not_made_twice(
    way: tuple[Severed, str], api: Api, request
) -> None:
    uuid = new_uuid()
    way[0].is_armed = True
    answer = api.post("/resource_providers", {"name": uuid, "uuid": uuid})
    way[0].is_armed = False
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert "while the change was being committed" in answer.json["errors"][0]["detail"]
    assert way[0].commits == 1, "it was tried again"
    was_heard = request.node.callspec.params["way"]
    assert api.get(f"/resource_providers/{uuid}").status_code == (200 if was_heard else 404)
