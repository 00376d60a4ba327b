"""A server whose database is connected and silent: requests fail soon, probes answer at once, and service resumes."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests import servers
from tests.http_calls import Answer
from tests.servers import configured, served_as_shipped
from tests.stalling_proxy import proxied
from tests.survival.load import send

THREADS = 4
REQUESTS = [("GET", "/resource_providers"), ("POST", "/resource_providers")] * 3


@pytest.fixture(params=["postgresql", pytest.param("mariadb", marks=pytest.mark.mariadb)])
def url(request: pytest.FixtureRequest) -> str:
    direct: str = request.getfixturevalue(f"{request.param}_url")
    return direct


def sent(url: str, number: int) -> Answer:
    method, path = REQUESTS[number]
    return send(url, method, path, {"name": f"host{number}"} if method == "POST" else None)


def test_silence_costs_requests_a_503_and_probes_nothing(url: str, tmp_path: Path) -> None:
    with (
        proxied(url) as (proxy, over_tcp),
        served_as_shipped(
            configured(tmp_path, over_tcp, statement_timeout="4", connect_timeout="2"), threads=THREADS
        ) as server,
        ThreadPoolExecutor(len(REQUESTS)) as clients,
    ):
        assert {answer.status for answer in clients.map(sent, [server.url] * THREADS, range(THREADS))} == {200}
        proxy.stall()
        waiting = [clients.submit(sent, server.url, number) for number in range(len(REQUESTS))]
        proxy.wait_until_holding(THREADS)
        assert send(server.url, "GET", "/healthcheck").status == 200
        ready = send(server.url, "GET", "/readycheck")
        assert (ready.status, ready.document["reason"]) == (503, "the database does not answer within a second")
        assert not any(request.done() for request in waiting)  # they hold all threads
        answers = [request.result() for request in waiting]
        assert {(answer.status, answer.headers["retry-after"]) for answer in answers} == {(503, "1")}
        proxy.resume()
        assert send(server.url, "GET", "/resource_providers").status == 200
        servers.until(lambda: send(server.url, "GET", "/readycheck").status == 200)
