"""The same races between the processes of one server, as in production."""

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests import servers
from tests.claims import entry, new_uuid
from tests.clouds import build, provider
from tests.concurrency.together import together
from tests.http_calls import HttpCalls

CLIENTS = 24


@pytest.fixture
def call(database_url: str, tmp_path: Path) -> Iterator[HttpCalls]:
    """Return a function that sends requests to three processes of four threads."""
    servers.write_configuration(tmp_path, servers.default_sections(database_url))
    with servers.running_server(servers.this_project(), tmp_path, workers=3, threads=4) as url:
        yield HttpCalls(url)


def test_claims_are_exact_across_processes(call: HttpCalls) -> None:
    cloud = build(call, provider("CN1", VCPU=10), provider("CN2", VCPU=1000))
    small, large = cloud.providers["CN1"], cloud.providers["CN2"]
    forwards, backwards = {small: {"VCPU": 1}, large: {"VCPU": 1}}, {large: {"VCPU": 1}, small: {"VCPU": 1}}

    def claim(consumer: str, shares: dict[str, dict[str, int]]) -> Callable[[], int]:
        return lambda: call("PUT", f"/allocations/{consumer}", "1.38", entry(shares))[0]

    bodies = [forwards if index % 2 else backwards for index in range(CLIENTS)]
    assert Counter(together([claim(new_uuid(), body) for body in bodies])) == {204: 10, 409: CLIENTS - 10}
    for uuid in (small, large):
        assert call("GET", f"/resource_providers/{uuid}/usages", "1.0")[1]["usages"] == {"VCPU": 10}

    consumer = new_uuid()
    answers = together([claim(consumer, {large: {"VCPU": 1}}) for _ in range(CLIENTS)])
    assert Counter(answers) == {204: 1, 409: CLIENTS - 1}
