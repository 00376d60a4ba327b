"""The memory of a worker under mixed requests: this server and the reference, side by side on PostgreSQL.

``nice -n 15 python -m tests.bench.memory --minutes 60`` prints a row each minute: the number of requests, and for each
server the MB that a worker alone holds, the worker's proportional share, and the shares of all its processes. Requests
are the random rounds of tests/differential, the same for all; answers are not compared here.

Each server is gunicorn with one worker of four threads, or several: ``ours`` as the README has it in production, where
workers are forked after loading; ``alone`` and ``reference`` with workers that load for themselves.
"""

import argparse
import contextlib
import itertools
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import NamedTuple

from tests import reference, servers
from tests.bench.meters import memory_of
from tests.differential.generate.world import World
from tests.differential.requests import Request
from tests.differential.rounds import plan
from tests.differential.sides import Side, Starter

AS_IN_PRODUCTION = ("--config", "python:placement.wsgi.gunicorn")
THREADS = 4
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


class Subject(NamedTuple):
    """A running server, and how it is asked."""

    served: servers.Served
    side: Side

    def ask(self, request: Request | None) -> None:
        """Send a request with this side's generations; None empties the cloud."""
        if request is None:
            self.side.reset()
        else:
            self.side.ask(request.resolved(self.side.generation))

    def cell(self) -> str:
        """Return a worker's private memory, its share, and the shares of all processes."""
        _arbiter, *workers = everything = [memory_of(pid) for pid in self.served.pids]
        private = statistics.mean(worker.private_mb for worker in workers)
        share = statistics.mean(worker.share_mb for worker in workers)
        return f"{private:.0f} / {share:.0f} / {sum(each.share_mb for each in everything):.0f}"


@contextlib.contextmanager
def running_subjects(names: Sequence[str], workers: int) -> Iterator[dict[str, Subject]]:
    """Run servers, each on its own database."""
    with contextlib.ExitStack() as stack:
        starter, subjects = Starter(stack), {}
        for name in names:
            kind, directory = KINDS[name], starter.directory()
            url = starter.new_database("postgresql", directory)
            servers.write_configuration(directory, servers.migrating(kind.sections(url)))
            served = servers.started_server(
                kind.installation(), directory, workers=workers, threads=THREADS, options=kind.options
            )
            stack.callback(served.stop)
            subjects[name] = Subject(served, Side(name, served.url, url, starter.opened(url)))
        yield subjects


def rounds(seed: int) -> Iterator[Request | None]:
    """Yield requests without end, with None before each new round."""
    for number in itertools.count():
        yield None
        yield from plan(World(Random(f"{seed}/{number}")))


def main() -> None:
    """Send rounds to all servers, and print a row each minute."""
    options = _options()
    with running_subjects(options.servers or [*KINDS], options.workers) as subjects:
        print(f"| minutes | requests | {' | '.join(subjects)} |\n{'| --- ' * (len(subjects) + 2)}|")
        begun, printed, sent = time.monotonic(), -1, 0
        for request in rounds(options.seed):
            passed = time.monotonic() - begun
            is_over = passed >= options.minutes * MINUTE_S or sent == options.requests
            if passed // MINUTE_S > printed or is_over:
                printed = int(passed // MINUTE_S)
                cells = [f"{passed / MINUTE_S:.0f}", f"{sent:,}", *[subject.cell() for subject in subjects.values()]]
                print(f"| {' | '.join(cells)} |", flush=True)
            if is_over:
                return
            for subject in subjects.values():
                subject.ask(request)
            sent += request is not None
            time.sleep(max(0.0, sent / options.rate - passed))


def _options() -> argparse.Namespace:
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="python -m tests.bench.memory", description=__doc__, formatter_class=form)
    parser.add_argument("servers", choices=KINDS, nargs="*", help="default: all")
    parser.add_argument("--workers", type=int, default=1, help="of each server (default: %(default)s)")
    parser.add_argument("--minutes", type=float, default=60, help="at most (default: %(default)s)")
    parser.add_argument("--requests", type=int, help="at most (default: as many as there is time for)")
    parser.add_argument("--rate", type=float, default=15, help="requests a second, at most (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the rounds (default: %(default)s)")
    return parser.parse_args()


if __name__ == "__main__":
    main()
