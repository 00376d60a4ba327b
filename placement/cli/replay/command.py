"""``placement simulate --trace``: parallel runs of policies on a published trace, and their report."""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean

import click

from placement.cli.output import available_width, table
from placement.cli.replay import traces
from placement.cli.replay.cheapest import PUBLISHED_AS
from placement.cli.replay.departures import ComeAndGone, come_and_gone
from placement.cli.replay.run import MILESTONES, WHOLE_DEVICES, FilledCluster, filled
from placement.cli.simulation.curves import Chart, svg

FIRST_SEED = 42
"""The published results start with this seed."""

Runs = Mapping[tuple[str, str], Sequence[FilledCluster]]
"""The results of each (workload, policy), by seed."""


def fill(folder: Path, workloads: Sequence[str], policies: Sequence[str], *, seeds: int, file: Path | None) -> None:
    """Run policies on a trace's workloads once per seed, print the results, and draw them to a file.

    Raises:
        ClickException: the folder has no such trace.
    """
    try:
        published = traces.published(folder)
        runs = _runs(folder, workloads, policies, range(FIRST_SEED, FIRST_SEED + seeds))
    except traces.NoTrace as error:
        raise click.ClickException(str(error)) from None
    for line in _told(runs, published, seeds):
        click.echo(line)
    if file is not None:
        file.write_text(svg([chart for workload in workloads for chart in _charts(runs, workload)]))
        click.echo(f"\nCurves: {file}")


def come_and_go(folder: Path, workloads: Sequence[str], policies: Sequence[str], *, file: Path | None) -> None:
    """Run policies on workloads whose tasks also leave; print and draw the results.

    Raises:
        ClickException: the folder has no such trace, or the trace has no times.
    """
    found: dict[tuple[str, str], ComeAndGone] = {}
    asked = list(product(workloads, policies))
    label = "Packing" if sys.stderr.isatty() else ""
    with click.progressbar(asked, label=label, file=sys.stderr) as bar:
        for workload, policy in bar:
            try:
                trace = traces.read(folder, workload)
            except traces.NoTrace as error:
                raise click.ClickException(str(error)) from None
            if not trace.stays:
                raise click.ClickException(f"The tasks of {workload!r} do not say when they come and go.")
            found[workload, policy] = come_and_gone(trace, policy)
    kinds = sorted({kind for one in found.values() for kind in one.refused})
    header = ["workload", "policy", "placed, %", "allocated, %", "most, %", *[f"refused: {kind}" for kind in kinds]]
    rows = [
        [
            *of,
            f"{one.placed:.2f}",
            f"{one.mean:.2f}",
            f"{one.most:.2f}",
            *[str(one.refused.get(kind, 0)) for kind in kinds],
        ]
        for of, one in found.items()
    ]
    click.echo("Tasks come and go; placed is the part of what they ask for over time, allocated the mean over time:")
    click.echo("")
    for line in table(header, rows, width=available_width()):
        click.echo(line)
    if file is not None:
        file.write_text(svg([_over_time(found, workload) for workload in workloads]))
        click.echo(f"\nCurves: {file}")


def _over_time(found: Mapping[tuple[str, str], ComeAndGone], workload: str) -> Chart:
    lines = {policy: one.by_time for (name, policy), one in found.items() if name == workload}
    return Chart(f"{workload}: allocated, in percent", lines, "time, in percent", 0, 100)


def _runs(folder: Path, workloads: Sequence[str], policies: Sequence[str], seeds: Sequence[int]) -> Runs:
    for workload in workloads:
        traces.read(folder, workload)  # Report missing files before running anything.
    asked = list(product(workloads, policies, seeds))
    found: dict[tuple[str, str], list[FilledCluster]] = {}
    # Not forked, because this process may have threads.
    with ProcessPoolExecutor(min(len(asked), os.cpu_count() or 1), get_context("spawn")) as processes:
        done = processes.map(partial(_one, folder), asked)
        label = "Packing" if sys.stderr.isatty() else ""
        with click.progressbar(done, length=len(asked), label=label, file=sys.stderr) as bar:
            for (workload, policy, _seed), one in zip(asked, bar, strict=True):
                found.setdefault((workload, policy), []).append(one)
    return found


def _one(folder: Path, asked: tuple[str, str, int]) -> FilledCluster:
    workload, policy, seed = asked
    return filled(traces.read(folder, workload), policy, seed)


def _told(runs: Runs, published: Mapping[tuple[str, str, int], float], seeds: int) -> Iterator[str]:
    header = ["workload", "policy", *[f"at {percent} %" for percent in MILESTONES], "published at 100 %"]
    rows = []
    for (workload, policy), results in runs.items():
        shares = [f"{fmean([one.allocated[percent] for one in results]):.2f}" for percent in MILESTONES]
        known = published.get((workload, PUBLISHED_AS[policy], MILESTONES[0]))
        rows.append([workload, policy, *shares, f"{known:.2f} ({PUBLISHED_AS[policy]})" if known is not None else "-"])
    units = " or ".join(sorted({one.unit for results in runs.values() for one in results}))
    yield f"Percent of {units} allocated when tasks for that many percent have arrived (seeds: {seeds}, mean):"
    yield ""
    yield from table(header, rows, width=available_width())
    yield ""
    if units == traces.DEVICES:
        yield f"Then at {MILESTONES[0]} %: empty hosts, and GPUs that are free where fewer whole ones are (stranded):"
        yield ""
        yield from table(*_left_over(runs), width=available_width())
        yield ""
    yield "Tasks that found no place until then, by what they ask for:"
    yield ""
    yield from table(*_refused(runs), width=available_width())


def _left_over(runs: Runs) -> tuple[list[str], list[list[str]]]:
    rows = [
        [
            *of,
            f"{fmean([one.empty_hosts for one in results]):.0f}",
            *[f"{fmean([one.stranded[size] for one in results]):.0f}" for size in WHOLE_DEVICES],
        ]
        for of, results in runs.items()
    ]
    return ["workload", "policy", "empty hosts", *[f"< {size}" for size in WHOLE_DEVICES]], rows


def _refused(runs: Runs) -> tuple[list[str], list[list[str]]]:
    kinds = sorted({kind for results in runs.values() for one in results for kind in one.refused})
    rows = [
        [*of, *[f"{fmean([one.refused.get(kind, 0) for one in results]):.0f}" for kind in kinds]]
        for of, results in runs.items()
    ]
    return ["workload", "policy", *kinds], rows


def _charts(runs: Runs, workload: str) -> list[Chart]:
    of_workload = {policy: results for (name, policy), results in runs.items() if name == workload}
    allocated = {policy: _means([one.allocated_by_arrival for one in of]) for policy, of in of_workload.items()}
    useless = {policy: _means([one.useless_by_arrival for one in of]) for policy, of in of_workload.items()}
    unit = next(one.unit for results in of_workload.values() for one in results)
    x_label = f"{unit} asked for by the tasks that have arrived, in percent"
    return [
        Chart(f"{workload}: {unit} allocated, in percent", allocated, x_label, 0, MILESTONES[-1]),
        Chart(f"{workload}: free and of no use to the expected work, in percent", useless, x_label, 0, MILESTONES[-1]),
    ]


def _means(samples: Sequence[Sequence[float]]) -> list[float]:
    return [fmean(values) for values in zip(*samples, strict=True)]
