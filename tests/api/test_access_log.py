"""The access log has one line per request, and no token in it."""

import logging
import re
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from placement.app import create_app
from placement.domain.identity import CURRENT_REQUEST, ServedRequest
from placement.settings import AccessLogSettings, DatabaseSettings, Settings
from placement.telemetry.record import Observed, RequestRecord
from tests.api.conftest import Api

pytestmark = pytest.mark.any_database

LOGGER = "placement.access"


class Collector(logging.Handler):
    """Keeps the lines, each with the request it belongs to."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        record.request = CURRENT_REQUEST.get()
        self.records.append(record)


@pytest.fixture
def lines() -> Iterator[list[logging.LogRecord]]:
    """The lines that were logged."""
    logger, collector = logging.getLogger(LOGGER), Collector()
    logger.addHandler(collector)
    logger.setLevel(logging.DEBUG)
    yield collector.records
    logger.removeHandler(collector)
    logger.setLevel(logging.NOTSET)


def request_of(record: logging.LogRecord) -> ServedRequest:
    found = vars(record)["request"]
    assert isinstance(found, ServedRequest)
    return found


def test_a_line_tells_what_was_asked_and_what_it_cost(api: Api, lines: list[logging.LogRecord]) -> None:
    answer = api.get("/resource_providers?name=x", version="1.20", headers={"x-auth-token": "admin:p1"})
    answer.close()
    (line,) = lines
    request = request_of(line)
    assert request.request_id == answer.headers["x-openstack-request-id"]
    assert request.identity is not None
    assert request.identity.project_id == "p1"
    access = vars(line)["access"]
    assert access.pop("duration_s") > 0
    assert access.pop("sql") > 0
    assert access == {
        "remote": "127.0.0.1",
        "method": "GET",
        "url": "/resource_providers?name=x",
        "route": "/resource_providers",
        "status": 200,
        "length": answer.headers["content-length"],
        "microversion": "1.20",
    }
    assert line.getMessage().startswith('127.0.0.1 "GET /resource_providers?name=x" status: 200 len: ')
    assert re.search(r" microversion: 1\.20 time: \d+\.\d{6} sql: \d+$", line.getMessage())
    assert CURRENT_REQUEST.get() is None


def test_the_route_is_the_path_without_its_values(api: Api, lines: list[logging.LogRecord]) -> None:
    api.get(f"/resource_providers/{uuid.uuid4()}/usages").close()
    api.get("/nowhere").close()
    assert [vars(line)["access"]["route"] for line in lines] == ["/resource_providers/<uuid>/usages", "none"]
    assert [vars(line)["access"]["status"] for line in lines] == [404, 404]


def test_no_line_holds_a_token(api: Api, lines: list[logging.LogRecord]) -> None:
    headers = {"x-auth-token": "admin", "x-service-token": "s3cret", "authorization": "Basic s3cret"}
    api.get("/resource_providers", headers=headers).close()
    api.app.test_client().get("/resource_providers", headers={"x-subject-token": "s3cret"}).close()
    assert len(lines) == 2
    assert all("s3cret" not in line.getMessage() + repr(vars(line)["access"]) for line in lines)


def test_a_url_cannot_forge_a_line(api: Api, lines: list[logging.LogRecord]) -> None:
    api.get("/traits/A%0AB%C3%A9").close()
    assert [vars(line)["access"]["url"].partition("/traits/")[2] for line in lines] == [r"A\nB\xc3\xa9"]


def test_what_fails_outside_of_the_api_is_seen_too() -> None:
    seen: list[RequestRecord] = []

    def broken(_environ: object, _start_response: object) -> list[bytes]:
        raise OSError("a middleware is broken")

    with pytest.raises(OSError, match="broken"):
        Observed(broken, [seen.append])({"REQUEST_METHOD": "GET"}, lambda *_answer: lambda _text: None)
    assert [(record.status, record.route) for record in seen] == [(500, "none")]


class _Unclosable(list[bytes]):
    def close(self) -> None:
        raise OSError("the client has gone")


def test_an_answer_that_cannot_be_closed_is_seen_too() -> None:
    seen: list[RequestRecord] = []

    def answered(_environ: object, start_response: Any) -> list[bytes]:
        start_response("200 OK", [])
        return _Unclosable([b"text"])

    body: Any = Observed(answered, [seen.append])({"REQUEST_METHOD": "GET"}, lambda *_answer: lambda _text: None)
    assert list(body) == [b"text"]
    with pytest.raises(OSError, match="gone"):
        body.close()
    assert [record.status for record in seen] == [200]


def test_probes_are_no_news_while_all_is_well(api: Api, lines: list[logging.LogRecord]) -> None:
    api.get("/healthcheck").close()
    api.get("/").close()
    assert [line.levelno for line in lines] == [logging.DEBUG, logging.DEBUG]
    api.app.test_client().open("/", method="OPTIONS").close()
    assert lines[-1].levelno == logging.INFO


def test_it_can_be_switched_off(sqlite_url: str, lines: list[logging.LogRecord]) -> None:
    settings = Settings(
        database=DatabaseSettings(connection=sqlite_url),
        auth_strategy="noauth2",
        access_log=AccessLogSettings(enabled=False),
    )
    app = create_app(settings)
    answer = app.test_client().get("/")
    assert answer.status_code == 200
    app.extensions["placement"].database.dispose()
    assert lines == []
