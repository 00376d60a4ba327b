"""The results for people: a table with the spread over the seeds, a verdict on each policy, and curves."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import fmean

from placement.cli.output import PrintedTable, whole
from placement.cli.simulation.cloud import JOB_GPUS
from placement.cli.simulation.curves import Chart
from placement.cli.simulation.policies import RunResult

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
