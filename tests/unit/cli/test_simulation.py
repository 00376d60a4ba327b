"""The parts of ``placement simulate``: workload, cloud, runs, report and curves."""

from collections import Counter
from xml.etree import ElementTree

import pytest

from placement.cli.simulate import judgements, summary
from placement.cli.simulation.cloud import (
    CPU_SIZES,
    GPU_SIZES,
    Cloud,
    Job,
    Load,
    gpu_server,
    plain_server,
    servers,
    trace,
)
from placement.cli.simulation.curves import Chart, svg
from placement.cli.simulation.policies import SAMPLES, RunResult, policies, run
from placement.domain.search_plan import plan_for

SMALL = servers(1, plain=6, with_gpus=4)
GPUS, VCPUS = 4 * 8, 6 * 64


def test_the_same_seed_gives_the_same_jobs_in_the_order_they_arrive() -> None:
    jobs = trace(7, Load(), gpus=GPUS, vcpus=VCPUS)
    assert jobs == trace(7, Load(), gpus=GPUS, vcpus=VCPUS) != trace(8, Load(), gpus=GPUS, vcpus=VCPUS)
    assert [job.arrives for job in jobs] == sorted(job.arrives for job in jobs)


def test_jobs_ask_for_as_much_as_the_load_says() -> None:
    """By Little's law, the mean demand at any time is the sum of amount x duration divided by the time."""
    load = Load(gpu=0.5, cpu=0.25, duration=200)
    jobs = trace(1, load, gpus=GPUS, vcpus=VCPUS)
    gpus = sum(job.gpus * (job.leaves - job.arrives) for job in jobs) / load.duration
    vcpus = sum(job.vcpus * (job.leaves - job.arrives) for job in jobs if not job.gpus) / load.duration
    assert (gpus, vcpus) == (pytest.approx(0.5 * GPUS, rel=0.1), pytest.approx(0.25 * VCPUS, rel=0.1))
    assert {*Counter(job.gpus for job in jobs)} == {0, *GPU_SIZES}
    assert {job.vcpus for job in jobs if not job.gpus} == {*CPU_SIZES}


@pytest.mark.parametrize(
    ("taken", "stranded"),
    [
        ([], 0),
        ([(3, "PGPU", 1)], 3),  # one switch is broken up: three whole ones serve one job of four
        ([(3, "PGPU", 2)], 2),
        ([(3, "PGPU", 1), (4, "PGPU", 1)], 2),
        ([(3, "PGPU", 1), (4, "PGPU", 1), (6, "PGPU", 1)], 5),
        ([(1, "VCPU", 32)], 4),  # VCPUs for one job are left
        ([(1, "VCPU", 33)], 8),
    ],
)
def test_stranded_are_the_gpus_that_no_job_of_four_can_use(taken: list[tuple[int, str, int]], stranded: int) -> None:
    server = gpu_server(1)
    assert [*server.switches] == [3, 4, 6, 7]
    cloud = Cloud([server])
    for provider, name, amount in taken:
        cloud.servers[1].take(provider, name, amount)
    assert cloud.stranded_gpus == stranded


@pytest.mark.parametrize("policy", [*policies(1)])
def test_every_policy_places_what_fits_and_leaves_an_empty_cloud(policy: str) -> None:
    jobs, cloud = trace(3, Load(gpu=1.2, cpu=1.2, duration=3), gpus=GPUS, vcpus=VCPUS), Cloud(SMALL)
    result = run([*jobs, Job(0, 8, 1000.0, 1001.0)], cloud, policies(1)[policy], duration=3)
    assert len(result.stranded) == len(result.used) == SAMPLES
    assert max(result.used) <= GPUS
    assert 0 < result.gpu_rejected < result.gpu_jobs
    assert (cloud.used_gpus, sum(server.used["VCPU"] for server in cloud.servers.values())) == (0, 8)


def test_a_job_that_fits_nowhere_is_rejected_and_others_are_not() -> None:
    jobs = [Job(8, 64, 1.0, 9.0), Job(8, 64, 2.0, 9.0), Job(1, 8, 3.0, 9.0), Job(0, 8, 4.0, 9.0)]
    result = run(jobs, Cloud([gpu_server(1), plain_server(8)]), policies(1)["all parts"], duration=5)
    assert (result.gpu_jobs, result.gpu_rejected) == (2, 2)  # the first arrived in the warm-up
    assert (result.cpu_jobs, result.cpu_rejected) == (1, 0)


def test_scarce_servers_are_spared_and_jobs_packed() -> None:
    """The CPU job stays off the GPUs, and the second single GPU completes the pair that the first one broke."""
    cloud, choose, homes = Cloud([gpu_server(1), gpu_server(8), plain_server(15)]), policies(1)["all parts"], []
    for job in (Job(0, 8, 0, 1), Job(1, 8, 0, 1), Job(2, 16, 0, 1), Job(1, 8, 0, 1)):
        plan = plan_for(job.request)
        chosen = choose(plan, cloud)
        assert chosen is not None
        cloud.place(plan, *chosen)
        homes.append((chosen[0], chosen[1][2:]))
    assert homes == [(15, ()), (1, (3,)), (1, (4,)), (1, (3,))]


def outcome(gpu_rejected: int = 0, cpu_rejected: int = 0, stranded: int = 0) -> RunResult:
    return RunResult(100, gpu_rejected, 200, cpu_rejected, (stranded,) * SAMPLES, (0,) * SAMPLES)


def test_the_table_has_the_mean_and_the_spread() -> None:
    line = [*summary({"unordered": [outcome(10), outcome(20, stranded=4)]}).lines()][2]
    assert line.startswith("unordered  ")
    assert [figures in line for figures in ("85 (80..90)", "15 (10..20)", "2 (0..4)")] == [True] * 3


def test_a_policy_is_judged_seed_by_seed_and_never_flattered() -> None:
    outcomes = {
        "unordered": [outcome(10), outcome(20)],
        "better": [outcome(5), outcome(5)],
        "worse": [outcome(11), outcome(30, cpu_rejected=9)],
        "mixed": [outcome(5), outcome(25)],
        "same": [outcome(10), outcome(20)],
    }
    better, worse, mixed, same = judgements(outcomes)
    assert better == "better: helps; 10 more GPU jobs are placed than unordered, more in every seed."
    assert worse.startswith("worse: does not help; 6 fewer GPU jobs are placed than unordered, fewer in every seed")
    assert worse.endswith(", and 4 more CPU jobs are rejected.")
    assert mixed == "mixed: no clear answer; more GPU jobs are placed than unordered in 1 of 2 seeds, fewer in 1."
    assert same == "same: no clear answer; more GPU jobs are placed than unordered in 0 of 2 seeds, fewer in 0."


@pytest.mark.parametrize("values", [[0, 0, 0], [1], [], [0.001, 0.002], [3, 70_000], [5, 5]])
def test_every_line_is_drawn_inside_its_frame(values: list[float]) -> None:
    chart = Chart("a < b & c", {"one": values, "<two>": [1, 2]}, "time", 0, 5)
    drawn, space = ElementTree.fromstring(svg([chart, chart])), "{http://www.w3.org/2000/svg}"
    lines = [line.get("points", "").replace(",", " ").split() for line in drawn.findall(f".//{space}polyline")]
    assert len(lines) == 4
    assert all(0 <= float(x) <= 720 for points in lines for x in points[::2])
    assert all(34 <= float(y) <= 260 for points in lines for y in points[1::2])
    texts = [text.text for text in drawn.iter(f"{space}text")]
    assert texts.count("a < b & c") == texts.count("<two>") == 2
