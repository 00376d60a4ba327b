"""``[fair_share] enforce = plain`` under concurrency: nobody gets more than is fair, and nobody waits forever."""

from collections.abc import Callable

import pytest
from flask import Flask
from werkzeug.test import TestResponse

from placement.store.connection.database import Database
from tests.api.conftest import Api
from tests.api.test_fair_allocations import CODE, serving
from tests.claims import ask, claimed, entry, make_provider, new_uuid
from tests.concurrency.together import check_books, statuses, together

CLIENTS = 12


@pytest.fixture
def fair(app: Flask) -> Api:
    return serving(app)


def claim(fair: Api, provider: str, gpus: int, project: str = "ann") -> Callable[[], TestResponse]:
    body = entry({provider: {"PGPU": gpus}}, project_id=project)
    return lambda: Api(fair.app).put(f"/allocations/{new_uuid()}", body)


def held(api: Api, project: str) -> int:
    usages = ask(api, "GET", f"/usages?project_id={project}", "1.9")["usages"]
    return int(usages.get("PGPU", 0))


def test_of_two_that_race_for_the_last_of_a_share_one_gets_it(fair: Api) -> None:
    """On separate providers, so that the claims do not wait for a provider's row lock."""
    bob, left, right = (make_provider(fair, PGPU=10) for _provider in range(3))
    claimed(fair, {bob: {"PGPU": 1}}, project_id="bob")
    claimed(fair, {bob: {"PGPU": 6}}, project_id="ann")
    answers = together([claim(fair, left, 6), claim(fair, right, 6)])
    assert statuses(answers) == {204: 1, 409: 1}
    (refused,) = [answer for answer in answers if answer.status_code == 409]
    assert refused.json["errors"][0]["code"] == CODE
    assert held(fair, "ann") == 12


def test_many_on_providers_of_their_own_get_exactly_what_is_theirs(fair: Api, served: Database) -> None:
    providers = [make_provider(fair, PGPU=2) for _client in range(CLIENTS)]
    claimed(fair, {providers[0]: {"PGPU": 1}}, project_id="bob")
    answers = together([claim(fair, provider, 1) for provider in providers for _twice in range(2)])
    assert held(fair, "ann") == CLIENTS == statuses(answers)[204]
    assert set(statuses(answers)) == {204, 409}
    check_books(served)
