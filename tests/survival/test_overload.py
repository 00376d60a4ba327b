"""Four times as many clients as server threads: they wait longer, but all are served, and memory stays level.

``--long`` has 100,000 writes acknowledged, as many as a busy cloud makes in some hours.
"""

from pathlib import Path

from placement.tuning import resident_bytes
from tests import servers
from tests.http_calls import TIMEOUT_S
from tests.servers import check_database, configured
from tests.survival.load import Crowd, check, prepared, send, wait_for

WORKERS = 2
THREADS = 4
HOSTS = 30
WRITES, ROUNDS = 120, 2
MANY_WRITES, MANY_ROUNDS = 100_000, 10
MAX_GROWTH = 1.05
"""The growth of a worker's memory allowed in the second half of a long run."""


def test_a_crowd_is_served_and_memory_stays_level(postgresql_url: str, tmp_path: Path, *, is_long: bool) -> None:
    writes, rounds = (MANY_WRITES, MANY_ROUNDS) if is_long else (WRITES, ROUNDS)
    directory = configured(tmp_path, postgresql_url)
    served = servers.started_server(servers.this_project(), directory, workers=WORKERS, threads=THREADS)
    memory: list[int] = []
    try:
        processes = served.workers
        for number in range(rounds):
            # A record for each: the time for its check grows with the square of its length.
            record = prepared(served.url, groups=2 * WORKERS * THREADS, hosts=HOSTS)
            with Crowd(record, [served.url], seed=number):
                wait_for(record, writes // rounds, timeout_s=TIMEOUT_S + writes / 10)
            memory.append(max(resident_bytes(pid) for pid in processes))
            print(dict(record.statuses), f"{memory[-1] >> 20} MB", flush=True)
            assert record.statuses["broken"] == 0
            check(record, served.url)
        assert served.workers == processes, "a worker was replaced"
        assert send(served.url, "GET", "/readycheck").status == 200
    finally:
        served.stop()
    if is_long:
        assert memory[-1] < MAX_GROWTH * memory[rounds // 2]
    check_database(tmp_path)
