"""Tries the orders of some requests, or repeats one that a test has found.

python -m tests.interleavings claim resize --database postgresql
python -m tests.interleavings claim resize --order 0,0,1,1,0
"""

import argparse
import contextlib
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.databases import SQLiteDatabases, migrate
from tests.interleavings.operations import OPERATIONS
from tests.interleavings.races import opened_arena, races_of, repeated
from tests.mariadb import running_mariadb
from tests.postgresql import running_postgresql


@contextlib.contextmanager
def _database(kind: str) -> Iterator[str]:
    if kind == "sqlite":
        with tempfile.TemporaryDirectory() as directory:
            yield SQLiteDatabases(Path(directory)).copy(Path(directory))
        return
    with running_postgresql() if kind == "postgresql" else running_mariadb() as server:
        url = server.database("interleavings")
        migrate(url)
        yield url


def main() -> int:
    """Print the faults; return 1 if there are any."""
    parser = argparse.ArgumentParser(prog="python -m tests.interleavings", description=__doc__)
    parser.add_argument("names", nargs="+", choices=OPERATIONS, metavar="REQUEST", help=", ".join(OPERATIONS))
    parser.add_argument("--database", choices=["postgresql", "mariadb", "sqlite"], default="postgresql")
    parser.add_argument("--order", help="the numbers of the requests in the order of their statements")
    options = parser.parse_args()
    with _database(options.database) as url, opened_arena(url) as arena:
        if options.order:
            verdicts = [repeated(arena, options.names, [int(number) for number in options.order.split(",")])]
        else:
            verdicts = list(races_of(arena, options.names))
    faults = [str(fault) for fault in verdicts if fault is not None]
    sys.stdout.write("\n".join([*faults, f"{len(verdicts)} orders, {len(faults)} faults\n"]))
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
