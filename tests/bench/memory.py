"""The memory of a worker under mixed requests: this server and the reference, side by side on PostgreSQL.

``nice -n 15 python -m tests.bench.memory --minutes 60`` prints a row each minute: the number of requests, and for each
server the MB that a worker alone holds, the worker's proportional share, and the shares of all its processes. Requests
are the random rounds of tests/differential, the same for all; answers are not compared here.

Each server is gunicorn with one worker of four threads, or several: ``ours`` as the README has it in production, where
workers are forked after loading; ``alone`` and ``reference`` with workers that load for themselves.
"""

import argparse
import contextlib
import http.client
import itertools
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import psycopg

from tests import reference, servers
from tests.bench.meters import held
from tests.differential.generate.plan import plan
from tests.differential.requests import Request
from tests.differential.sides import GENERATIONS
from tests.empty_database import empty_database
from tests.postgresql import running_postgresql

AS_IN_PRODUCTION = ("--config", "python:placement.wsgi.gunicorn")
THREADS = 4
TIMEOUT_S = 120
MINUTE_S = 60


class Kind(NamedTuple):
    """How a server is started."""

    installation: Callable[[], servers.Installation]
    sections: Callable[[str], servers.Sections]
    options: Sequence[str] = ()


KINDS = {
    "ours": Kind(servers.this_project, servers.default_sections, AS_IN_PRODUCTION),
    "alone": Kind(servers.this_project, servers.default_sections),
    "reference": Kind(reference.installation, reference.configuration),
}


class Subject:
    """A running server and its one client, which has a connection for each thread and uses them in turn."""

    def __init__(self, served: servers.Served, database_url: str) -> None:
        self._served = served
        self._database_url = database_url
        place, threads = urlsplit(served.url).netloc, THREADS * (len(served.pids) - 1)
        connections = [http.client.HTTPConnection(place, timeout=TIMEOUT_S) for _ in range(threads)]
        self._connections = itertools.cycle(connections)

    def reset(self) -> None:
        """Empty the cloud."""
        empty_database(self._database_url)

    def ask(self, request: Request) -> None:
        """Send a request with this side's generations, and read the answer."""
        sent, connection = request.resolved(self._generation), next(self._connections)
        for is_last in (False, True):
            try:
                connection.request(sent.method, sent.target(), sent.content(), sent.all_headers())
                connection.getresponse().read()
            except (http.client.HTTPException, OSError):
                connection.close()  # The server may close the connection after an answer.
                if is_last:
                    raise
            else:
                return

    def cell(self) -> str:
        """Return a worker's private memory, its share, and the shares of all processes."""
        _arbiter, *workers = everything = [held(pid) for pid in self._served.pids]
        private = statistics.mean(worker.private_mb for worker in workers)
        share = statistics.mean(worker.share_mb for worker in workers)
        return f"{private:.0f} / {share:.0f} / {sum(one.share_mb for one in everything):.0f}"

    def _generation(self, kind: str, uuid: str) -> int | None:
        with psycopg.connect(self._database_url) as database:
            row = database.execute(GENERATIONS[kind].replace("?", "%s"), [uuid]).fetchone()
        return row and int(row[0])


@contextlib.contextmanager
def running_subjects(names: Sequence[str], workers: int) -> Iterator[dict[str, Subject]]:
    """Run servers, each on its own database."""
    with contextlib.ExitStack() as stack:
        postgresql = stack.enter_context(running_postgresql())
        subjects = {}
        for name in names:
            kind, directory = KINDS[name], Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="memory-")))
            url = postgresql.database(name)
            servers.write_configuration(directory, kind.sections(url))
            servers.placement_manage(kind.installation(), directory, "db", "sync")
            sizes = {"workers": workers, "threads": THREADS}
            served = servers.started_server(kind.installation(), directory, options=kind.options, **sizes)
            stack.callback(served.stop)
            subjects[name] = Subject(served, url)
        yield subjects


def rounds(seed: int) -> Iterator[Request | None]:
    """Yield requests without end, with None before each new round."""
    for number in itertools.count():
        yield None
        yield from plan(seed, number)


def row(subjects: Sequence[Subject], minutes: float, asked: int) -> str:
    cells = [f"{minutes:.0f}", f"{asked:,}", *[subject.cell() for subject in subjects]]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    options = _options()
    with running_subjects(options.servers, options.workers) as subjects:
        print(f"| minutes | requests | {' | '.join(subjects)} |\n{'| --- ' * (len(subjects) + 2)}|")
        everyone = [*subjects.values()]
        begun, printed, asked = time.monotonic(), 0, 0
        print(row(everyone, 0, 0), flush=True)
        for request in rounds(options.seed):
            for subject in everyone:
                subject.reset() if request is None else subject.ask(request)
            asked += request is not None
            passed = time.monotonic() - begun
            if passed // MINUTE_S > printed or asked == options.requests:
                printed = passed // MINUTE_S
                print(row(everyone, passed / MINUTE_S, asked), flush=True)
            if passed >= options.minutes * MINUTE_S or asked == options.requests:
                return
            time.sleep(max(0.0, asked / options.rate - passed))


def _options() -> argparse.Namespace:
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="python -m tests.bench.memory", description=__doc__, formatter_class=form)
    parser.add_argument("servers", choices=KINDS, nargs="*", default=["ours", "reference"], help="(ours, reference)")
    parser.add_argument("--workers", type=int, default=1, help="of each server (default: %(default)s)")
    parser.add_argument("--minutes", type=float, default=60, help="at most (default: %(default)s)")
    parser.add_argument("--requests", type=int, help="at most (default: as many as there is time for)")
    parser.add_argument("--rate", type=float, default=15, help="requests a second, at most (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the rounds (default: %(default)s)")
    return parser.parse_args()


if __name__ == "__main__":
    main()
