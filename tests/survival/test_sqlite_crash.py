"""The embedded database when the server is killed while writing: nothing acknowledged is lost.

A killed process shows that transactions are whole, not that they reached the disk: for that SQLite runs with
``synchronous = FULL``, as it does here and by default.
"""

import sqlite3
from pathlib import Path

from tests import servers
from tests.empty_database import sqlite_path
from tests.servers import check_database, configured
from tests.survival.load import Crowd, check, prepared, wait_for
from tests.survival.mirrors import Mirrors

WRITES_BEFORE_A_CRASH = 40


def test_nothing_acknowledged_is_lost_when_the_server_is_killed(tmp_path: Path, is_long: bool) -> None:
    url = f"sqlite:///{tmp_path / 'placement.sqlite'}"
    directory = configured(tmp_path, url)
    served = servers.started_server(servers.this_project(), directory, workers=2)
    try:
        records = []
        mirrors = Mirrors([served.url])
        for crash in range(50 if is_long else 1):
            # A record for each: the time for its check grows with the square of its length.
            records.append(record := prepared(served.url))
            with Crowd(record, [served.url], seed=100 * crash):
                wait_for(record, WRITES_BEFORE_A_CRASH, timeout_s=120)
                served.kill()
            check_database(directory)
            with sqlite3.connect(sqlite_path(url)) as connection:
                assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            connection.close()
            port = int(served.url.rpartition(":")[2])
            served = servers.started_server(servers.this_project(), directory, port=port, workers=2)
            check(record, served.url)
        for record in records[:-1]:  # nor does a later crash lose anything
            check(record, served.url)
        mirrors.check()
    finally:
        served.kill()
    assert sum(record.statuses["broken"] for record in records) > 0
