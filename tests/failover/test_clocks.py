"""Servers and databases whose clocks jump: what happened before what is decided by generations, not by the time."""

import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path

import pytest

from tests import servers
from tests.failover.clocks import Clock, compiled_library
from tests.failover.replicas import Pair, running_directory, running_pair
from tests.survival.deployment import check_database, configured
from tests.survival.load import Crowd, prepared, send, wait_for
from tests.survival.mirrors import Mirrors
from tests.survival.verdict import check

SERVERS = 3
FARTHEST_S = 24 * 3600
JUMPS = 25
"""How many jumps there are while a history is made."""


@pytest.fixture
def clocks() -> Iterator[list[Clock]]:
    """One for each node of the database and each server."""
    with running_directory() as directory:
        library = compiled_library(directory)
        yield [Clock(directory / str(number), library) for number in range(2 + SERVERS)]


@pytest.fixture
def pair(clocks: list[Clock]) -> Iterator[Pair]:
    with running_pair([clock.variables for clock in clocks[SERVERS:]]) as running:
        yield running


@pytest.fixture
def urls(clocks: list[Clock], pair: Pair, tmp_path: Path) -> Iterator[list[str]]:
    project, started = servers.this_project(), []
    directory = configured(tmp_path, pair.url(pair.primary, pair.standby))
    try:
        for clock in clocks[:SERVERS]:
            own = replace(project, variables={**project.variables, **clock.variables})
            started.append(servers.started_server(own, directory))
        yield [served.url for served in started]
    finally:
        for served in started:
            served.kill()


def test_nothing_is_lost_or_made_up_while_clocks_jump(
    clocks: list[Clock], urls: list[str], tmp_path: Path, is_long: bool
) -> None:
    choice = random.Random(1)
    for _ in range(1000 // JUMPS if is_long else 1):
        record = prepared(urls[0])
        with Mirrors(urls) as mirrors, Crowd(record, urls, seed=choice.randrange(10**6)):
            for _ in range(JUMPS):
                choice.choice(clocks).jump(choice.randint(-FARTHEST_S, FARTHEST_S))
                wait_for(record, 3, timeout_s=600)
        print("\n", dict(record.statuses), "acknowledged", len(record.acknowledged))
        assert record.statuses["broken"] == 0
        assert not any("503" in answer for answer in record.statuses), record.statuses
        check(record, urls[1])
        mirrors.check()
    check_database(tmp_path)


def test_each_server_and_each_node_goes_by_its_own_clock(clocks: list[Clock], pair: Pair, urls: list[str]) -> None:
    """Else the test above would show nothing."""
    hours = [5, -7, 11, 16, -20]
    for clock, ahead in zip(clocks, hours, strict=True):
        clock.jump(3600 * ahead)
    told = [parsedate_to_datetime(send(url, "GET", "/").headers["date"]) for url in urls]
    told += [node.execute("SELECT clock_timestamp()")[0][0] for node in (pair.primary, pair.standby)]
    now = datetime.now(UTC)
    assert [round((moment - now).total_seconds() / 3600) for moment in told] == hours
