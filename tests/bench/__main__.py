"""Measure this server beside openstack-placement, or beside itself, and print the tables of docs/performance.md.

tox -e bench                                    everything (an hour)
tox -e bench -- --only nested-1000 --pairs 5    cases whose section, cloud or name match

CPU is that of all processes of a server and of its database connections for one request or claim: the median of
samples that are taken in turn. "Times" is the ratio with its quartiles, pair by pair. Candidates are unordered unless a
row says "best first", because openstack-placement has no order. "Answers" tells whether both gave the same candidates.
Bars in milliseconds allow for slow machines (meters.py). Exits with 1 if a bar is missed or an answer differs.

Servers are started for each cloud: do not edit the code meanwhile, or run this from a clone of the repository.
"""

import argparse
import contextlib
import itertools
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import parse_qsl

from tests import reference
from tests.bench.cases import Bar, Case, Task, all_cases
from tests.bench.measuring import Spread, Subject, measure, spread
from tests.bench.meters import floor
from tests.bench.sides import Answer, Caller, Cluster, Side, TookTooLong, running_cluster
from tests.bench.work import Get, checked
from tests.differential.answers import candidate_differences, canonical
from tests.differential.requests import Request

MAX_S = 300
"""How long our server may take; a search with a budget must never take longer."""

HEADER = (
    "| cloud | work | openstack-placement, or other | here | times | bar | answers |\n|---|---|---|---|---|---|---|"
)


@dataclass(frozen=True, slots=True)
class Row:
    """What was measured of a case; ``difference`` says how the answers differ, or why they were not compared."""

    case: Case
    task: Subject
    other: Subject | None
    difference: str

    @property
    def times(self) -> Spread | None:
        """How many times as much the other task costs, or as often this one is done, pair by pair."""
        if self.other is None or not self.other.samples:
            return None
        pairs = zip(self.task.samples, self.other.samples, strict=False)
        if self.case.is_rate:
            return spread([mine.per_second / theirs.per_second for mine, theirs in pairs])
        return spread([theirs.cpu_ms / mine.cpu_ms for mine, theirs in pairs])

    def bars(self) -> Iterator[tuple[bool, str]]:
        """Yield whether each bar is met, in words, too."""
        if self.case.times is not None and self.times is not None:
            yield _judged(self.case.times, self.times.median, "x")
        if self.case.cpu_ms is not None:
            cost = spread([sample.cpu_ms for sample in self.task.samples]).median
            yield _judged(self.case.cpu_ms, cost / floor().slowness, " ms")


def main() -> int:
    """Measure the cases that the command line selects, and print each as it is measured."""
    options = _options()
    chosen = [case for case in all_cases() if re.search(options.only, str(case))]
    print("\n".join(_circumstances(options.pairs)), flush=True)
    is_fine, section = True, ""
    with running_cluster() as cluster:
        for row in _measured(cluster, chosen, options):
            if row.case.section != section:
                section = row.case.section
                print(f"\n## {section}\n\n{HEADER}")
            bars = [*row.bars()]
            print(f"| {' | '.join(_cells(row, [text for _, text in bars]))} |", flush=True)
            is_fine &= all(is_met for is_met, _ in bars) and not row.difference.startswith("DIFFERENT")
    return 0 if is_fine else 1


def _measured(cluster: Cluster, cases: Iterable[Case], options: argparse.Namespace) -> Iterator[Row]:
    """Measure cases; consecutive ones on the same servers share them."""
    for servers, group in itertools.groupby(cases, lambda case: (case.task.server, case.other and case.other.server)):
        with contextlib.ExitStack() as stack:
            sides = {server: stack.enter_context(cluster.side(server)) for server in servers if server}
            for case in group:
                yield _row(case, sides, options)


def _row(case: Case, sides: dict[object, Side], options: argparse.Namespace) -> Row:
    seconds = options.claim_seconds if case.is_rate else None

    def subject(task: Task) -> Subject:
        patience = options.patience if task.server.is_reference else MAX_S
        return Subject(sides[task.server], task.work, clients=case.clients, seconds=seconds, timeout_s=patience)

    task, other = subject(case.task), case.other and subject(case.other)
    if other is None or case.is_tried_once:
        measure([task], pairs=options.pairs)
        if other is not None:
            other.take()
    else:
        measure([task, other], pairs=options.pairs)
    return Row(case, task, other, _difference(case, sides, other))


def _difference(case: Case, sides: dict[object, Side], other: Subject | None) -> str:
    """Return in words whether the other server gives the same answer to a read, as far as it can be compared."""
    work = case.task.work
    if not isinstance(work, Get) or case.other is None or not case.other.server.is_reference:
        return ""
    answer = checked(sides[case.task.server].caller(timeout_s=MAX_S)("GET", work.path))
    number = len(answer.document().get("allocation_requests", ()))
    if case.expected is not None and number != case.expected:
        return f"DIFFERENT: {number} candidates, not {case.expected}"
    if other is None or other.is_late:
        return "not compared"
    theirs = sides[case.other.server].caller(timeout_s=MAX_S)
    try:
        return _compared(work, answer, theirs)
    except TookTooLong:
        sides[case.other.server].stop()
        return "not compared"


def _compared(work: Get, answer: Answer, theirs: Caller) -> str:
    path, _, query = work.path.partition("?")
    request = Request("GET", path, "1.39", tuple(parse_qsl(query)))
    whole = checked(theirs("GET", work.path.partition("&limit=")[0])).document()
    if request.is_candidates:
        wrong = candidate_differences(request, whole, answer.document())
    else:
        wrong = [] if canonical(whole) == canonical(answer.document()) else ["another answer"]
    return f"DIFFERENT: {wrong[0][:200]}" if wrong else "same"


def _cells(row: Row, bars: Sequence[str]) -> Iterator[str]:
    yield str(row.case.task.server)
    yield row.case.name
    yield _cost(row.other, row.case) if row.other else ""
    yield _cost(row.task, row.case)
    yield (
        ""
        if row.times is None
        else f"**{_number(row.times.median)}** ({_number(row.times.low)}..{_number(row.times.high)})"
    )
    yield "; ".join(bars)
    yield row.difference


def _cost(subject: Subject, case: Case) -> str:
    if not subject.samples:
        return "too long"
    server, database, rate = (spread(values).median for values in zip(*subject.samples, strict=True))
    cost = f"{_number(server)} + {_number(database)}"
    return f"{_number(rate)} a second, {cost} each" if case.is_rate else cost


def _judged(bar: Bar, measured: float, unit: str) -> tuple[bool, str]:
    is_met = bar.is_met(measured)
    return is_met, f"{'' if bar.is_minimum else 'at most '}{bar.value:g}{unit}{'' if is_met else ': **MISSED**'}"


def _number(value: float) -> str:
    """Return a number with about three digits."""
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _circumstances(pairs: int) -> Iterator[str]:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    processor = next((line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.machine())
    describe = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    commit = subprocess.run(describe, capture_output=True, text=True, check=False).stdout.strip()
    yield f"* {datetime.now(UTC):%Y-%m-%d %H:%M} UTC, commit {commit}, openstack-placement {reference.VERSION}"
    yield f"* {processor}, {os.cpu_count()} cores, {platform.platform()}, Python {platform.python_version()}"
    yield f"* {pairs} pairs, load {os.getloadavg()[0]:.1f}, {floor()}"


def _options() -> argparse.Namespace:
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__, formatter_class=form)
    parser.add_argument("--only", default="", help="a regular expression on 'section: cloud: work'")
    parser.add_argument("--pairs", type=int, default=11, help="samples of each side (default: %(default)s)")
    parser.add_argument("--patience", type=float, default=60, help="seconds to wait for openstack-placement")
    parser.add_argument("--claim-seconds", type=float, default=3, help="length of a sample of claims")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
