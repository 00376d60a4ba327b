"""Three servers on one PostgreSQL: a server is killed, then the primary, and the standby takes over.

The servers find the new primary by themselves; nothing acknowledged is lost, and clients get no errors except
"conflict" and "try again" - apart from those of the killed server.
"""

import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import servers
from tests.databases import open_database
from tests.failover.replicas import Pair, running_pair
from tests.servers import Served, check_database, configured
from tests.store.rows import VCPU, add_providers, run, stocking
from tests.store.test_lost_commits import LateCommit
from tests.survival.load import Crowd, check, prepared, send, wait_for
from tests.survival.mirrors import Mirrors

PHASE = 40
"""Acknowledged writes between two events."""
STOPS = 25
"""How often something is stopped during a history in the long form."""
CLOSE_ALL = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'placement'"


@pytest.fixture
def pair() -> Iterator[Pair]:
    with running_pair() as running:
        yield running


@pytest.fixture
def fleet(pair: Pair, tmp_path: Path) -> Iterator[list[Served]]:
    """Three servers with the same configuration, which names both nodes."""
    directory = configured(tmp_path, pair.url(pair.primary, pair.standby))
    with servers.running_servers([directory] * 3) as served:
        yield served


def test_a_standby_takes_over_and_nothing_acknowledged_is_lost(
    pair: Pair, fleet: list[Served], tmp_path: Path, record_property, is_long: bool
) -> None:
    urls = [served.url for served in fleet]
    count = 20 * PHASE if is_long else PHASE
    record = prepared(urls[0])
    with Mirrors(urls) as mirrors, Crowd(record, urls, seed=1):
        wait_for(record, count, timeout_s=600)
        fleet[0].kill()
        wait_for(record, count, timeout_s=600)
        pair.primary.kill()
        killed_at = time.monotonic()
        pair.standby.promote()
        promoted_at = time.monotonic()
        wait_for(record, count, timeout_s=600)
    recovered_at = min(moment for moment in record.acknowledged if moment > promoted_at)
    record_property("seconds from the kill to the promotion", round(promoted_at - killed_at, 2))
    record_property("seconds from the promotion to the next write", round(recovered_at - promoted_at, 2))
    record_property("answers", dict(record.statuses))
    print(f"\npromoted after {promoted_at - killed_at:.2f} s, next write {recovered_at - promoted_at:.2f} s later")
    print(dict(record.statuses), "acknowledged", len(record.acknowledged))
    assert set(record.broken) <= {urls[0]}
    check(record, urls[1])
    mirrors.check()
    check_database(tmp_path)


def test_commits_that_a_promoted_standby_lacks_are_noticed(pair: Pair, tmp_path: Path) -> None:
    """The standby has a later transaction, but not the one that was open beside it and has filled a host."""
    with servers.running_servers([configured(tmp_path, pair.url(pair.primary, pair.standby))]) as (served,):
        database = open_database(pair.url(pair.primary))
        with database.writer.begin() as connection:
            for provider in add_providers(connection, 3):
                run(connection, stocking((provider, VCPU), total=10))
        late = LateCommit(database)
        pair.cut_the_standby_off()
        late.commit()
        database.dispose()
        cursor = send(served.url, "GET", "/planner/v1/journal?after=now").document["cursor"]
        assert hosts_for_9(served) == {"provider-2", "provider-3"}
        pair.primary.kill()
        pair.standby.promote()
        servers.until(lambda: send(served.url, "GET", "/readycheck").status == 200)
        assert send(served.url, "GET", f"/planner/v1/journal?after={cursor}").status == 410
        assert hosts_for_9(served) == {"provider-1", "provider-2", "provider-3"}


def hosts_for_9(served: Served) -> set[str]:
    found = send(served.url, "GET", "/allocation_candidates?resources=VCPU:9").document["provider_summaries"]
    return set(found)


def test_nothing_is_lost_or_made_up_while_parts_of_it_stand_still(
    pair: Pair, fleet: list[Served], tmp_path: Path, is_long: bool
) -> None:
    """The primary, its synchronous standby and each server are stopped in turn, and resume in their old state."""
    urls, choice = [served.url for served in fleet], random.Random(1)
    for _ in range(1000 // STOPS if is_long else 1):
        record = prepared(urls[0])
        with Mirrors(urls) as mirrors, Crowd(record, urls, seed=choice.randrange(10**6)):
            for _ in range(STOPS if is_long else 8):
                stopped = choice.choice([pair.primary, pair.standby, *fleet])
                with servers.standing_still(stopped.pids):
                    time.sleep(choice.uniform(0.1, 3))  # how long nothing answers
                wait_for(record, 3, timeout_s=600)
        print("\n", dict(record.statuses), "acknowledged", len(record.acknowledged))
        assert record.statuses["broken"] == 0
        check(record, urls[1])
        mirrors.check()
    check_database(tmp_path)


def test_a_write_that_ends_up_at_a_standby_is_told_to_try_again(pair: Pair, tmp_path: Path) -> None:
    """A proxy still forwards to the old node: the answer is 503, and the connection is not used again."""
    pair.standby.promote()
    with servers.running_servers([configured(tmp_path, pair.url(pair.standby))]) as (served,):
        body = {"name": "compute1"}
        assert send(served.url, "POST", "/resource_providers", body).status == 200
        # It applies only to new connections, so open ones are closed.
        pair.standby.execute("ALTER DATABASE placement SET default_transaction_read_only = on", database="postgres")
        pair.standby.execute(CLOSE_ALL, database="postgres")
        answer = send(served.url, "POST", "/resource_providers", {"name": "compute2"})
        assert (answer.status, answer.headers.get("retry-after")) == (503, "10")
        pair.standby.execute("ALTER DATABASE placement RESET default_transaction_read_only", database="postgres")
        assert send(served.url, "POST", "/resource_providers", {"name": "compute3"}).status == 200
