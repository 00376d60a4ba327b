"""The access log, and the line about a plain request without candidates."""

import logging
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from placement.api import allocation_candidates
from placement.domain.identity import CURRENT_REQUEST, ServedRequest
from placement.logs import RequestFormatter
from placement.settings import AccessLogSettings, LoggingSettings
from placement.telemetry.record import Observed, RequestRecord
from tests.api.conftest import Api, serving, with_settings
from tests.clouds import SHARES, provider
from tests.stored_clouds import stored

pytestmark = pytest.mark.any_database


class Collector(logging.Handler):
    """Keeps lines of a logger: the records, each with the request it belongs to, and what a log would show."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(RequestFormatter(options=LoggingSettings()))
        self.records: list[logging.LogRecord] = []
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        record.request = CURRENT_REQUEST.get()
        self.records.append(record)
        self.texts.append(self.format(record))


@contextmanager
def collected(logger: logging.Logger, level: int) -> Iterator[Collector]:
    collector, before = Collector(), logger.level
    logger.addHandler(collector)
    logger.setLevel(level)
    yield collector
    logger.removeHandler(collector)
    logger.setLevel(before)


@pytest.fixture
def lines() -> Iterator[list[logging.LogRecord]]:
    """The lines of the access log."""
    with collected(logging.getLogger("placement.access"), logging.DEBUG) as collector:
        yield collector.records


@pytest.fixture
def log() -> Iterator[list[str]]:
    """The texts about plain requests without candidates."""
    with collected(allocation_candidates.LOG, logging.INFO) as collector:
        yield collector.texts


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


class Unclosable(list[bytes]):
    def close(self) -> None:
        raise OSError("the client has gone")


def test_an_answer_that_cannot_be_closed_is_seen_too() -> None:
    seen: list[RequestRecord] = []

    def answered(_environ: object, start_response: Any) -> list[bytes]:
        start_response("200 OK", [])
        return Unclosable([b"text"])

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
    with serving(sqlite_url, access_log=AccessLogSettings(enabled=False)) as silent:
        assert silent.get("/").status_code == 200
    assert lines == []


EMPTY = "resources=VCPU:99&required=HW_NUMA_ROOT"


@pytest.fixture
def cloud(api):
    numas = [provider(f"numa{n}", VCPU=8, MEMORY_MB=64, traits=["HW_NUMA_ROOT"]) for n in range(2)]
    pool = provider("pool", DISK_GB=100, traits=[SHARES], aggregates=["A"])
    return stored(api.app, provider("host", *numas, aggregates=["A"]), provider("gpus", PGPU=1), pool)


def find(api, query: str):
    response = api.get(f"/allocation_candidates?{query}")
    assert response.status_code == 200
    return response


def test_one_line_tells_the_cause_with_the_id_of_the_request(api, cloud, log):
    """planner/test_explain.py has every cause."""
    response = find(api, "resources=DISK_GB:999")
    (line,) = log
    assert " INFO " in line
    assert "No provider is left after this condition: 999 DISK_GB free (unsuffixed group)." in line
    assert response.headers["x-openstack-request-id"] in line


def test_long_values_do_not_make_long_lines(api, cloud, log):
    uuids = ",".join(f"00000000-0000-4000-8000-{number:012}" for number in range(300))
    find(api, f"resources=VCPU:1&member_of=in:{uuids}")
    (line,) = log
    assert len(line) < 500


def test_a_request_that_finds_candidates_says_nothing(api, cloud, log):
    for query in ("resources=VCPU:1", "resources=VCPU:1&limit=1", "resources=VCPU:1,DISK_GB:1"):
        assert find(api, query).get_json()["allocation_requests"]
    assert log == []


def test_the_same_cause_is_told_as_often_as_the_same_is_asked(api, cloud, log):
    assert find(api, EMPTY).get_json() == find(api, EMPTY).get_json()
    first, second = [line.partition("There are no")[2] for line in log]
    assert first == second


def test_an_operator_who_wants_no_candidates_at_all_is_told_no_cause(api, app, cloud, log):
    find(with_settings(app, options={"max_allocation_candidates": 0}), "resources=VCPU:1")
    assert log == []


def test_amounts_may_add_up_to_more_than_a_database_can_compare(api, cloud):
    groups = "&".join([f"resources_{number}=VCPU:{2**63 - 1 - number}" for number in range(5)])
    answer = find(api, f"{groups}&group_policy=none").get_json()
    assert answer == {"allocation_requests": [], "provider_summaries": {}}
