"""Where each of many groups may be served by the host or by a pool, ranking takes no more than the answer is worth."""

import sys
from collections import Counter
from collections.abc import Iterator

import pytest
from flask import Flask

from placement.app import create_app
from placement.domain.search_plan import SearchLimits
from placement.settings import DatabaseSettings, Settings
from tests.api.conftest import Api
from tests.clouds import provider
from tests.stored_clouds import stored

GROUPS, HOSTS, ROOM = 8, 12, 40
QUERY = "/allocation_candidates?group_policy=none&" + "&".join(f"resources{n}=DISK_GB:1" for n in range(GROUPS))
MAX_CALLS = 20_000


@pytest.fixture
def app(sqlite_url: str) -> Iterator[Flask]:
    """An application whose answers have room for forty candidates."""
    settings = Settings(database=DatabaseSettings(connection=sqlite_url), auth_strategy="noauth2")
    application = create_app(settings, limits=SearchLimits(placements=GROUPS * ROOM))
    yield application
    application.extensions["placement"].database.dispose()


def test_no_more_is_ranked_than_an_answer_has_room_for(app: Flask) -> None:
    """Of 256 combinations on each host: with 24 groups there are 16 million, which took 43 s."""
    pool = provider("pool", DISK_GB=1000, traits=["MISC_SHARES_VIA_AGGREGATE"], aggregates=["A"])
    stored(app, pool, *[provider(f"host{n}", DISK_GB=1000, aggregates=["A"]) for n in range(HOSTS)])
    api = Api(app)
    api.get("/allocation_candidates?resources=DISK_GB:1")  # what only the first request needs
    calls = Counter[str]()
    sys.setprofile(lambda _frame, event, _argument: calls.update([event]))
    try:
        answer = api.get(QUERY)
    finally:
        sys.setprofile(None)
    assert len(answer.json["allocation_requests"]) == ROOM
    assert answer.headers["x-placement-search"] == "incomplete"
    assert calls["call"] < MAX_CALLS
