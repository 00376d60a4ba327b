"""The whole table: each policy on each published workload with each seed, beside the published figures.

``python -m tests.bench.packing TRACE`` adds the missing runs to ``--runs FILE`` (JSON lines, so that it can be stopped
and resumed; start with an empty file after changes to the code), computes upper bounds, and prints the page from which
docs/packing.md is written. ``--workload``, ``--policy`` and ``--seeds`` restrict the runs; ``--report`` runs nothing.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean
from typing import Any

from placement.cli.simulation import traces
from placement.cli.simulation.packing import MILESTONES, PUBLISHED_AS, filled
from placement.cli.simulation.trace_reports import FIRST_SEED
from tests.bench.packing_bounds import bound

POLICIES = ("fragmentation", "gradient", "best fit")
LEAST_ABOVE_FGD, LEAST_ON_MEAN, LEAST_ON_GPUSPEC33 = 0.0, 0.5, 2.0

Asked = tuple[Path, str, str, int]
Figures = Mapping[tuple[str, str], Sequence[float]]
"""(workload, policy) -> percent of GPUs allocated when tasks for 100 % have arrived, seed by seed."""


def main() -> int:
    """Run, report, and return 1 if a bar is missed."""
    options = _options()
    published = traces.published(options.trace)
    workloads = options.workload or sorted({workload for workload, _policy, _percent in published}, key=_natural)
    seeds = range(FIRST_SEED, FIRST_SEED + options.seeds)
    options.runs.touch()
    if not options.report:
        _run(options, workloads, seeds)
    figures = _figures(options.runs, seeds)
    bounds = {workload: bound(traces.read(options.trace, workload), seeds) for workload in workloads}
    missed = _missed(figures, published, workloads)
    print(_page(figures, published, bounds, missed))
    return 1 if missed else 0


def _natural(name: str) -> tuple[str, int]:
    return name.rstrip("0123456789"), int(name[len(name.rstrip("0123456789")) :] or 0)


def _run(options: argparse.Namespace, workloads: Sequence[str], seeds: Sequence[int]) -> None:
    done = {(run["workload"], run["policy"], run["seed"]) for run in _runs(options.runs)}
    asked = [
        (options.trace, workload, policy, seed)
        for policy, workload, seed in product(options.policy or POLICIES, workloads, seeds)
        if (workload, policy, seed) not in done
    ]
    with ProcessPoolExecutor(options.processes, get_context("spawn")) as processes, options.runs.open("a") as file:
        for number, run in enumerate(processes.map(_one, asked), start=1):
            file.write(json.dumps(run) + "\n")
            file.flush()
            print(f"{number} of {len(asked)}: {run['workload']}, {run['policy']}, {run['seed']}", file=sys.stderr)


def _one(asked: Asked) -> dict[str, Any]:
    folder, workload, policy, seed = asked
    trace, began = traces.read(folder, workload), time.process_time()
    found = asdict(filled(trace, policy, seed, until=MILESTONES[0]))
    spent = round(time.process_time() - began, 2)
    return {"workload": workload, "policy": policy, "seed": seed, "commit": _commit(), "cpu_s": spent, **found}


def _runs(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def _figures(file: Path, seeds: Sequence[int]) -> dict[tuple[str, str], list[float]]:
    """Return the figures of the combinations that were run with all seeds."""
    found: dict[tuple[str, str], dict[int, float]] = {}
    for run in _runs(file):
        found.setdefault((run["workload"], run["policy"]), {})[run["seed"]] = run["allocated"]["100"]
    return {of: [by_seed[seed] for seed in seeds] for of, by_seed in found.items() if by_seed.keys() >= {*seeds}}


def _missed(figures: Figures, published: Mapping[tuple[str, str, int], float], workloads: Sequence[str]) -> list[str]:
    """Return the bars that are missed, in words."""
    above = {w: fmean(figures[w, "fragmentation"]) - published[w, "FGD", 100] for w in workloads}
    best_fit = {w: fmean(figures[w, "fragmentation"]) - published[w, "BestFit", 100] for w in workloads}
    missed = [f"{w}: {more:+.2f} beside FGD" for w, more in above.items() if more < LEAST_ABOVE_FGD]
    missed += [f"{w}: {more:+.2f} beside BestFit" for w, more in best_fit.items() if more < 0]
    if fmean(above.values()) < LEAST_ON_MEAN:
        missed.append(f"mean of all: {fmean(above.values()):+.2f} beside FGD")
    if above.get("gpuspec33", LEAST_ON_GPUSPEC33) < LEAST_ON_GPUSPEC33:
        missed.append(f"gpuspec33: {above['gpuspec33']:+.2f} beside FGD")
    return missed


def _page(
    figures: Figures,
    published: Mapping[tuple[str, str, int], float],
    bounds: Mapping[str, float],
    missed: Sequence[str],
) -> str:
    rows = []
    for workload, most in bounds.items():
        ours = figures[workload, "fragmentation"]
        cells = [_cell(figures.get((workload, policy))) for policy in POLICIES[1:]]
        known = {policy: published[workload, PUBLISHED_AS[policy], 100] for policy in POLICIES}
        row = [workload, f"**{fmean(ours):.2f}** ({min(ours):.2f}..{max(ours):.2f})"]
        row += [f"{known['gradient']:.2f}", f"{fmean(ours) - known['gradient']:+.2f}", f"{known['best fit']:.2f}"]
        rows.append([*row, *cells, f"{most:.2f}", f"{100 * fmean(ours) / most:.1f} %"])
    means = [fmean(figures[w, "fragmentation"]) for w in bounds]
    fgd = [published[w, "FGD", 100] for w in bounds]
    rows.append(
        ["mean", f"**{fmean(means):.2f}**", f"{fmean(fgd):.2f}", f"{fmean(means) - fmean(fgd):+.2f}", "", "", ""]
    )
    rows[-1] += [f"{fmean(bounds.values()):.2f}", f"{100 * fmean(means) / fmean(bounds.values()):.1f} %"]
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    bars = "All bars are met" if not missed else f"MISSED: {'; '.join(missed)}"
    return EXPLANATION.format(date=f"{datetime.now(UTC):%Y-%m-%d}", commit=_commit(), table=table, bars=bars)


def _cell(found: Sequence[float] | None) -> str:
    return "-" if found is None else f"{fmean(found):.2f}"


EXPLANATION = """# Packing a published trace

Percentage of 6,212 GPUs that are allocated when tasks for 100 % of them have arrived: mean of ten seeds, with minimum
and maximum. Written by `python -m tests.bench.packing TRACE`, {date}, commit {commit}.

*fragmentation* is this project's policy; *gradient* and *best fit* are its own implementations of FGD and BestFit,
whose published means are shown beside them ("Beware of Fragmentation", Weng et al., USENIX ATC 2023). No algorithm can
exceed the *bound*, even if it knows all tasks beforehand: it is the linear relaxation in packing_bounds.py, solved by
HiGHS.

| workload | fragmentation | FGD | more | BestFit | gradient | best fit | bound | reached |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
{table}

{bars} (at least FGD on each workload, 0.5 more on the mean, 2 more on gpuspec33, never below BestFit).
"""


def _commit() -> str:
    command = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    done = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.packing", description=__doc__)
    parser.add_argument("trace", type=Path, help="the folder with the CSV files")
    parser.add_argument("--runs", type=Path, default=Path("packing-runs.jsonl"), help="what was run already")
    parser.add_argument("--workload", action="append", help="repeatable; by default all that were published")
    parser.add_argument("--policy", action="append", choices=POLICIES, help="repeatable; by default all")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--report", action="store_true", help="run nothing, print the page of what was run")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
