"""Measure this server and the reference on the same work, and print how many times cheaper ours is.

tox -e bench                                   everything, row by row into .tox/bench-results.md (about 40 minutes)
tox -e bench -- --only nested-1000 --pairs 5    cases whose name contains this, printed
tox -e bench -- --quick                        a small selection in a few minutes, printed

Servers are started for each cloud: do not edit the code meanwhile, or run this from a clone of the repository.
"""

import argparse
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from tests import reference
from tests.bench import cases, statements
from tests.bench.cases import Case, ClaimCase, OrderCase, OwnCase, Place, StampedeCase
from tests.bench.cluster import SETTINGS, Cluster, running_cluster
from tests.bench.report import Results, markdown
from tests.bench.run import Options, Run
from tests.bench.sides import WORKER_CLASS, WORKERS, Starter

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / ".tox" / "bench-results.md"
QUICK = r"100(,|:|$)|wide-8|pcie"

T = TypeVar("T", Case, ClaimCase, OwnCase, OrderCase, StampedeCase)


def main() -> int:
    """Run the measurements that the command line selects; return 1 if an answer was wrong."""
    chosen = _options()
    options = Options(chosen.pairs, chosen.patience, chosen.claim_seconds)
    results, begun = Results(chosen.patience), _circumstances(chosen.pairs)
    with running_cluster(chosen.data, _say) as cluster:
        try:
            for _ in _measured(cluster, options, chosen.only, results):
                if not chosen.only:
                    _keep(results, [*begun, f"Load average when the last row was measured: {_load()}."])
        except KeyboardInterrupt:
            _say("interrupted; this is what there is")
    if chosen.only:
        print(_page(results, [*begun, f"Load average at the end: {_load()}."]))
    return 1 if any(row.check.startswith(("WRONG", "DIFFERENT")) for row in results.rows) else 0


def _measured(cluster: Cluster, options: Options, only: str, results: Results) -> Iterator[None]:
    """Measure row by row; each row is in the results once it is complete."""
    run = Run(Starter(cluster), options, _say)
    compared = [*cases.candidate_cases(), *cases.cliff_cases(), *cases.small_cases(), *cases.ordered_cases()]
    for row in run.compare(_wanted(compared, only)):
        results.rows.append(row)
        yield
    for own_row in run.compare_own(_wanted(cases.own_cases(), only)):
        results.own.append(own_row)
        yield
    for claim_row in run.compare_claims(_wanted(cases.claim_cases(), only)):
        results.claims.append(claim_row)
        yield
    for order_row in run.compare_orders(_wanted(cases.order_cases(), only)):
        results.orders.append(order_row)
        yield
    for stampede_row in run.compare_stampedes(_wanted(cases.stampede_cases(), only)):
        results.stampedes.append(stampede_row)
        yield
    places = [place for place in statements.PLACES if _fits(f"statements {place}", only)]
    for statement_row in statements.measure_statements(cluster, places):
        results.statements.append(statement_row)
        yield


def _keep(results: Results, facts: Iterable[str]) -> None:
    """Write the results so far; docs/performance.md is written from them."""
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(_page(results, facts), encoding="utf-8")


def _wanted(found: Iterable[T], only: str) -> list[T]:
    return [case for case in found if _fits(_full_name(case), only)]


def _full_name(case: Case | ClaimCase | OwnCase | OrderCase | StampedeCase) -> str:
    if isinstance(case, OrderCase | StampedeCase):
        return f"order, {case.cloud}: {case.name}"
    place: Place | str = "own" if isinstance(case, OwnCase) else case.place
    return f"{place}: {case.name}"


def _fits(name: str, only: str) -> bool:
    return re.search(only, name) is not None


def _page(results: Results, facts: Iterable[str]) -> str:
    return "# Results\n\n" + EXPLANATION + "\n".join(f"* {fact}" for fact in facts) + "\n\n" + markdown(results)


EXPLANATION = f"""Written by `tox -e bench` (tests/bench). Both servers use the same PostgreSQL and the same
gunicorn ({WORKERS} {WORKER_CLASS} workers: one request at a time per process, so that no other request is counted),
copies of the same cloud, and get the same requests in turn at microversion 1.39. CPU is the CPU time of all processes
of the server and of its database connections for one request, as the median over the pairs; "times" is reference /
ours, pair by pair, with the quartiles. Latencies suffer from whatever else the machine does. MiB is the largest size of
a worker process; it does not shrink from row to row. The reference has the database as it created it; ours has adopted
a copy. "Answers" says whether both gave the same set of candidates and summaries (with a limit: the same number, all of
them among the reference's without a limit). Ranking is off on ours, because the reference does not order candidates,
unless a row says "best first". Rows are written as they are measured; a run that ended early lacks the later ones.

"""


def _circumstances(pairs: int) -> list[str]:
    now = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    return [
        f"{now}, commit {_commit()}, openstack-placement {reference.VERSION}, {pairs} pairs",
        f"{_processor()}, {os.cpu_count()} cores, {platform.platform()}, Python {platform.python_version()}",
        f"PostgreSQL: {', '.join(f'{name} = {value}' for name, value in SETTINGS.items())}",
        f"Load average at the start: {_load()}.",
    ]


def _commit() -> str:
    command = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.machine())


def _load() -> str:
    return ", ".join(f"{load:.1f}" for load in os.getloadavg())


def _say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def _options() -> argparse.Namespace:
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__, formatter_class=form)
    parser.add_argument("--only", default="", help="a regular expression on 'cloud, fill: work'")
    parser.add_argument("--pairs", type=int, default=11, help="samples of each side (default: %(default)s)")
    parser.add_argument("--patience", type=float, default=60, help="seconds to wait for the reference")
    parser.add_argument("--claim-seconds", type=float, default=3, help="length of a stretch of claims")
    parser.add_argument("--quick", action="store_true", help="small clouds, three pairs, little patience")
    parser.add_argument("--data", type=Path, help="keep the clouds in this directory for the next time")
    options = parser.parse_args()
    if options.quick:
        options.only, options.pairs, options.patience, options.claim_seconds = options.only or QUICK, 3, 5, 1
    return options


if __name__ == "__main__":
    sys.exit(main())
