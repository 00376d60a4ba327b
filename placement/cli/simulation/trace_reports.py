"""``placement simulate --trace``: parallel runs of policies on a published trace, and their report."""

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean

import click

from placement.cli.output import PrintedCell, PrintedTable, Report, show, watched, whole
from placement.cli.simulation import traces
from placement.cli.simulation.curves import Chart, svg
from placement.cli.simulation.packing import (
    MILESTONES,
    PUBLISHED_AS,
    WHOLE_DEVICES,
    ComeAndGone,
    FilledCluster,
    come_and_gone,
    filled,
)

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
    show(_report(runs, published, seeds))
    if file is not None:
        file.write_text(svg([chart for workload in workloads for chart in _charts(runs, workload)]))


def come_and_go(folder: Path, workloads: Sequence[str], policies: Sequence[str], *, file: Path | None) -> None:
    """Run policies on workloads whose tasks also leave; print and draw the results.

    Raises:
        ClickException: the folder has no such trace, or the trace has no times.
    """
    results: dict[tuple[str, str], ComeAndGone] = {}
    runs = list(product(workloads, policies))
    with watched(runs, "Packing") as bar:
        for workload, policy in bar:
            try:
                trace = traces.read(folder, workload)
            except traces.NoTrace as error:
                raise click.ClickException(str(error)) from None
            if not trace.stays:
                raise click.ClickException(f"The tasks of {workload!r} do not say when they come and go.")
            results[workload, policy] = come_and_gone(trace, policy)
    kinds = sorted({kind for result in results.values() for kind in result.refused})
    header = ["workload", "policy", "placed, %", "allocated, %", "most, %", *[f"refused: {kind}" for kind in kinds]]
    rows = [
        [
            *map(whole, names),
            *[_percent(part) for part in (result.placed, result.mean, result.peak_percent)],
            *[result.refused.get(kind, 0) for kind in kinds],
        ]
        for names, result in results.items()
    ]
    table = PrintedTable(header, rows)
    legend = "Tasks come and go; placed is the part of what they ask for over time, allocated the mean over time:"
    show(Report(table.records(), [legend, "", table]))
    if file is not None:
        charts = []
        for workload in workloads:
            lines = {policy: result.by_time for (name, policy), result in results.items() if name == workload}
            charts.append(Chart(f"{workload}: allocated, in percent", lines, "time, in percent", 0, 100))
        file.write_text(svg(charts))


def _runs(folder: Path, workloads: Sequence[str], policies: Sequence[str], seeds: Sequence[int]) -> Runs:
    for workload in workloads:
        traces.read(folder, workload)  # Report missing files before running anything.
    runs = list(product(workloads, policies, seeds))
    results: dict[tuple[str, str], list[FilledCluster]] = {}
    # Not forked, because this process may have threads.
    with ProcessPoolExecutor(min(len(runs), os.cpu_count() or 1), get_context("spawn")) as processes:
        done = processes.map(partial(_filled, folder), runs)
        with watched(done, "Packing", length=len(runs)) as bar:
            for (workload, policy, _seed), result in zip(runs, bar, strict=True):
                results.setdefault((workload, policy), []).append(result)
    return results


def _filled(folder: Path, run: tuple[str, str, int]) -> FilledCluster:
    workload, policy, seed = run
    return filled(traces.read(folder, workload), policy, seed)


def _percent(part: float) -> PrintedCell:
    return PrintedCell(f"{part:.2f}", part)


def _report(runs: Runs, published: Mapping[tuple[str, str, int], float], seeds: int) -> Report:
    allocated, left_over, refused = _allocated(runs, published), _left_over(runs), _refused(runs)
    units = " or ".join(sorted({result.unit for results in runs.values() for result in results}))
    blocks: list[str | PrintedTable] = [
        f"Percent of {units} allocated when tasks for that many percent have arrived (seeds: {seeds}, mean):",
        *("", allocated, ""),
    ]
    document = {"allocated": allocated.records()}
    if units == traces.DEVICES:
        blocks += [
            f"Then at {MILESTONES[0]} %: empty hosts, and GPUs that are free where fewer whole ones are (stranded):",
            *("", left_over, ""),
        ]
        document["left_over"] = left_over.records()
    blocks += ["Tasks that found no place until then, by what they ask for:", "", refused]
    return Report(document | {"refused": refused.records()}, blocks)


def _allocated(runs: Runs, published: Mapping[tuple[str, str, int], float]) -> PrintedTable:
    header = ["workload", "policy", *[f"at {percent} %" for percent in MILESTONES], "published at 100 %"]
    rows = []
    for (workload, policy), results in runs.items():
        shares = [_percent(fmean([result.allocated[percent] for result in results])) for percent in MILESTONES]
        published_share = published.get((workload, PUBLISHED_AS[policy], MILESTONES[0]))
        shown = "-" if published_share is None else f"{published_share:.2f} ({PUBLISHED_AS[policy]})"
        rows.append([whole(workload), whole(policy), *shares, shown])
    return PrintedTable(header, rows)


def _left_over(runs: Runs) -> PrintedTable:
    rows = []
    for names, results in runs.items():
        stranded = [round(fmean([result.stranded[size] for result in results])) for size in WHOLE_DEVICES]
        rows.append([*map(whole, names), round(fmean([result.empty_hosts for result in results])), *stranded])
    return PrintedTable(["workload", "policy", "empty hosts", *[f"< {size}" for size in WHOLE_DEVICES]], rows)


def _refused(runs: Runs) -> PrintedTable:
    kinds = sorted({kind for results in runs.values() for result in results for kind in result.refused})
    rows = [
        [*map(whole, names), *[round(fmean([result.refused.get(kind, 0) for result in results])) for kind in kinds]]
        for names, results in runs.items()
    ]
    return PrintedTable(["workload", "policy", *kinds], rows)


def _charts(runs: Runs, workload: str) -> list[Chart]:
    of_workload = {policy: results for (name, policy), results in runs.items() if name == workload}
    allocated = {
        policy: _means([result.allocated_by_arrival for result in results]) for policy, results in of_workload.items()
    }
    useless = {
        policy: _means([result.useless_by_arrival for result in results]) for policy, results in of_workload.items()
    }
    unit = next(result.unit for results in of_workload.values() for result in results)
    x_label = f"{unit} asked for by the tasks that have arrived, in percent"
    return [
        Chart(f"{workload}: {unit} allocated, in percent", allocated, x_label, 0, MILESTONES[-1]),
        Chart(f"{workload}: free and of no use to the expected work, in percent", useless, x_label, 0, MILESTONES[-1]),
    ]


def _means(samples: Sequence[Sequence[float]]) -> list[float]:
    return [fmean(values) for values in zip(*samples, strict=True)]
