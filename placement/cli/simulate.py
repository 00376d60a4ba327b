"""``placement simulate``: the effect of ranking on a cloud, in numbers, with a synthetic workload."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from math import isnan
from pathlib import Path
from statistics import fmean
from typing import Any

import click

from placement.cli.output import PrintedTable, Report, listed, show, watched, whole
from placement.cli.simulation.cloud import JOB_GPUS, Cloud, Load, servers, trace
from placement.cli.simulation.curves import Chart, svg
from placement.cli.simulation.packing import POLICIES
from placement.cli.simulation.policies import WARM_UP, RunResult, policies, run
from placement.cli.simulation.trace_reports import come_and_go, fill

PLAIN, WITH_GPUS = 120, 80
QUICK = 4
"""By which factor a quick run's cloud is smaller."""


class _LoadRange(click.FloatRange):
    """A fraction of a cloud's resources."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number. No bound keeps out what is not one."""
        load = float(super().convert(value, param, ctx))
        if isnan(load):
            self.fail(f"{value!r} is not a number.", param, ctx)
        return load


@click.command()
@click.option("--seeds", type=click.IntRange(1, 100), default=5, show_default=True, help="How many traces to run.")
@click.option(
    "--gpu-load", type=_LoadRange(0.1, 2), default=0.9, show_default=True, help="GPUs requested, as a fraction of all."
)
@click.option(
    "--cpu-load",
    type=_LoadRange(0.1, 2),
    default=0.85,
    show_default=True,
    help="VCPUs requested by CPU jobs, as a fraction of those on servers without GPUs.",
)
@click.option("--quick", is_flag=True, help="Use a quarter of the servers: faster, but less significant.")
@click.option(
    "--trace",
    "folder",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    help="Pack a published GPU trace instead, a folder of CSV files; see docs/explanation/ranking.md.",
)
@click.option("--workload", "workloads", multiple=True, help="A workload of the trace; repeatable. [default: default]")
@click.option(
    "--policy", "chosen", multiple=True, type=click.Choice(list(POLICIES)), help="A policy for the trace; repeatable."
)
@click.option("--departures", is_flag=True, help="Let the trace's tasks arrive and leave at their times.")
@click.option("--svg", "file", type=click.Path(dir_okay=False, path_type=Path), help="Draw the curves to this file.")
@listed
def simulate(  # noqa: PLR0913 - the options
    *,
    seeds: int,
    gpu_load: float,
    cpu_load: float,
    quick: bool,
    folder: Path | None,
    workloads: tuple[str, ...],
    chosen: tuple[str, ...],
    departures: bool,
    file: Path | None,
) -> None:
    """Compare orders of candidates on a mixed workload of CPU and GPU jobs.

    Jobs arrive at 200 servers, 80 of them with 8 GPUs, take the first candidate, and leave. The same traces are run
    with several orders. Search and ranking are the server's own; no server or database is needed. Takes a minute or
    two.

    With --trace, tasks of a trace are packed until they ask for 130 % of its GPUs, or of what is asked for most, and
    the percentages that policies allocate are printed next to the published ones. Takes half a minute per seed and
    workload.
    """
    if folder is None and (workloads or chosen or departures):
        raise click.UsageError("--workload, --policy and --departures are about a trace: name its folder with --trace.")
    if folder is not None:
        _refuse_unused(departures=departures)
    if file is not None:
        file.touch()  # Fail before the work rather than after it.
    if departures and folder is not None:
        come_and_go(folder, workloads or ("default",), chosen or tuple(POLICIES), file=file)
        return
    if folder is not None:
        fill(folder, workloads or ("default",), chosen or tuple(POLICIES), seeds=seeds, file=file)
        return
    load = Load(gpu=gpu_load, cpu=cpu_load)
    plain, with_gpus = (PLAIN // QUICK, WITH_GPUS // QUICK) if quick else (PLAIN, WITH_GPUS)
    outcomes = _outcomes(seeds, load, plain=plain, with_gpus=with_gpus)
    show(_report(outcomes, load, servers_in_all=plain + with_gpus, with_gpus=with_gpus))
    if file is not None:
        file.write_text(svg(charts(outcomes, load.duration)))


def _refuse_unused(*, departures: bool) -> None:
    """Refuse options that have no effect on a trace."""
    context = click.get_current_context()
    unused = ["gpu_load", "cpu_load", "quick", *(["seeds"] if departures else [])]
    for name in unused:
        if context.get_parameter_source(name) is not click.core.ParameterSource.DEFAULT:
            trace_kind = "a trace whose tasks come and go" if name == "seeds" else "a trace"
            raise click.UsageError(f"--{name.replace('_', '-')} has no effect on {trace_kind}.")


Outcomes = Mapping[str, Sequence[RunResult]]
"""Policy -> the result of each seed, with seeds in the same order for all."""

COLUMNS: tuple[tuple[str, Callable[[RunResult], float]], ...] = (
    ("GPU jobs placed", lambda result: result.gpu_jobs - result.gpu_rejected),
    ("GPU jobs rejected", lambda result: result.gpu_rejected),
    ("GPUs in use", lambda result: result.mean_used),
    ("GPUs stranded", lambda result: result.mean_stranded),
    ("CPU jobs rejected", lambda result: result.cpu_rejected),
)


def summary(outcomes: Outcomes) -> PrintedTable:
    """Return a table with each policy's mean, minimum and maximum over the seeds."""
    rows = [
        [whole(policy), *[_spread([*map(column, seeds)]) for _name, column in COLUMNS]]
        for policy, seeds in outcomes.items()
    ]
    return PrintedTable(["policy", *[name for name, _column in COLUMNS]], rows)


def _spread(values: Sequence[float]) -> str:
    return f"{fmean(values):.0f} ({min(values):.0f}..{max(values):.0f})"


def judgements(outcomes: Outcomes) -> Iterator[str]:
    """Yield a sentence on each policy but the first: whether it served more GPU jobs than the first, seed by seed."""
    (first, baseline), *compared = outcomes.items()
    for policy, seeds in compared:
        gained = [before.gpu_rejected - after.gpu_rejected for before, after in zip(baseline, seeds, strict=True)]
        cost = fmean(after.cpu_rejected - before.cpu_rejected for before, after in zip(baseline, seeds, strict=True))
        price = f", and {cost:.0f} more CPU jobs are rejected" if cost >= 1 else ""
        yield f"{policy}: {_verdict(gained, first)}{price}."


def _verdict(gained: Sequence[int], first: str) -> str:
    better, worse = sum(gain > 0 for gain in gained), sum(gain < 0 for gain in gained)
    if better == len(gained):
        return f"helps; {fmean(gained):.0f} more GPU jobs are placed than {first}, more in every seed"
    if worse == len(gained):
        return f"does not help; {-fmean(gained):.0f} fewer GPU jobs are placed than {first}, fewer in every seed"
    return (
        f"no clear answer; more GPU jobs are placed than {first} in {better} of {len(gained)} seeds, fewer in {worse}"
    )


def charts(outcomes: Outcomes, duration: float) -> list[Chart]:
    """Return curves of the means over the seeds."""

    def chart(title: str, values_of: Callable[[RunResult], Sequence[int]]) -> Chart:
        lines = {
            policy: [fmean(values) for values in zip(*map(values_of, seeds), strict=True)]
            for policy, seeds in outcomes.items()
        }
        return Chart(title, lines, "time, in mean durations of a job", 0, duration)

    return [
        chart(f"Free GPUs that no job of {JOB_GPUS} GPUs can use", lambda result: result.stranded),
        chart("GPUs in use", lambda result: result.used),
    ]


def _outcomes(seeds: int, load: Load, *, plain: int, with_gpus: int) -> Outcomes:
    outcomes: dict[str, list[RunResult]] = {}
    with watched([*product(range(1, seeds + 1), policies(1))], "Simulating") as runs:
        for seed, name in runs:
            made = servers(seed, plain=plain, with_gpus=with_gpus)
            empty = Cloud(made)
            jobs = trace(
                seed, load, gpus=empty.total("PGPU", with_gpus=True), vcpus=empty.total("VCPU", with_gpus=False)
            )
            policy = policies(seed)[name]
            outcomes.setdefault(name, []).append(run(jobs, Cloud(made), policy, duration=load.duration))
    return outcomes


def _report(outcomes: Outcomes, load: Load, *, servers_in_all: int, with_gpus: int) -> Report:
    seeds = next(iter(outcomes.values()))
    jobs = sum(result.gpu_jobs + result.cpu_jobs for result in seeds) / len(seeds)
    blocks = [
        f"{servers_in_all} servers, {with_gpus} of them with 8 GPUs. GPU jobs ask for {load.gpu:.0%} of the GPUs,",
        f"CPU jobs for {load.cpu:.0%} of the VCPUs of the other servers. Counted: about {jobs:.0f} jobs",
        f"of the last {1 - WARM_UP:.0%} of the time. Mean of {len(seeds)} seeds (least..greatest):",
        "",
    ]
    table = summary(outcomes)
    return Report(table.records(), [*blocks, table, "", *judgements(outcomes)])
