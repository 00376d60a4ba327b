"""The parts of ``placement simulate``: workload, cloud, runs, report and curves."""

from collections import Counter
from xml.etree import ElementTree

import pytest

from placement.cli.simulation.cloud import Cloud, gpu_server, plain_server, servers
from placement.cli.simulation.curves import Chart, svg
from placement.cli.simulation.policies import SAMPLES, RunResult, policies, run
from placement.cli.simulation.report import judgements, summary
from placement.cli.simulation.workload import CPU_SIZES, GPU_SIZES, Job, Load, trace
from placement.domain.search_plan import plan_for

SMALL = servers(1, plain=6, with_gpus=4)
GPUS, VCPUS = 4 * 8, 6 * 64


def outcome(gpu_rejected: int = 0, cpu_rejected: int = 0, stranded: int = 0) -> RunResult:
    return RunResult(100, gpu_rejected, 200, cpu_rejected, (stranded,) * SAMPLES, (0,) * SAMPLES)


class TestWorkload:
    def test_the_same_seed_gives_the_same_jobs_in_the_order_they_arrive(self) -> None:
        jobs = trace(7, Load(), gpus=GPUS, vcpus=VCPUS)
        assert jobs == trace(7, Load(), gpus=GPUS, vcpus=VCPUS)
        assert jobs != trace(8, Load(), gpus=GPUS, vcpus=VCPUS)
        assert [job.arrives for job in jobs] == sorted(job.arrives for job in jobs)

    def test_jobs_ask_for_as_much_as_the_load_says(self) -> None:
        """By Little's law, the mean demand at any time is the sum of amount x duration divided by the time."""
        load = Load(gpu=0.5, cpu=0.25, duration=200)
        jobs = trace(1, load, gpus=GPUS, vcpus=VCPUS)
        asked = {"gpus": 0.0, "vcpus": 0.0}
        for job in jobs:
            asked["gpus"] += job.gpus * (job.leaves - job.arrives) / load.duration
            asked["vcpus"] += (0 if job.gpus else job.vcpus) * (job.leaves - job.arrives) / load.duration
        assert asked["gpus"] == pytest.approx(0.5 * GPUS, rel=0.1)
        assert asked["vcpus"] == pytest.approx(0.25 * VCPUS, rel=0.1)
        assert set(Counter(job.gpus for job in jobs)) == {0, *GPU_SIZES}
        assert {job.vcpus for job in jobs if not job.gpus} == set(CPU_SIZES)


class TestCloud:
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
    def test_stranded_are_the_gpus_that_no_job_of_four_can_use(
        self, taken: list[tuple[int, str, int]], stranded: int
    ) -> None:
        server = gpu_server(1)
        assert [*server.switches] == [3, 4, 6, 7]
        cloud = Cloud([server])
        for provider, name, amount in taken:
            cloud.servers[1].take(provider, name, amount)
        assert cloud.stranded_gpus == stranded

    def test_a_job_takes_from_its_candidate_and_gives_it_back(self) -> None:
        cloud = Cloud([plain_server(1), gpu_server(2)])
        plan = plan_for(Job(4, 32, 0, 1).request)
        places = [tree.root for tree in cloud.trees(plan)]
        choice = (2, 2, 4, 5)
        cloud.place(plan, 2, choice)
        assert (cloud.used_gpus, cloud.servers[2].used["VCPU"], cloud.stranded_gpus) == (4, 32, 0)
        cloud.place(plan, 2, choice)  # the search would not: the switches are full
        assert cloud.trees(plan) == []
        for _ in range(2):
            cloud.place(plan, 2, choice, sign=-1)
        assert (cloud.used_gpus, [tree.root for tree in cloud.trees(plan)], places) == (0, [2], [2])


class TestRuns:
    @pytest.mark.parametrize("policy", list(policies(1)))
    def test_every_policy_places_what_fits_and_leaves_an_empty_cloud(self, policy: str) -> None:
        jobs = trace(3, Load(gpu=1.2, cpu=1.2, duration=3), gpus=GPUS, vcpus=VCPUS)
        last = Job(0, 8, 1000.0, 1001.0)
        cloud = Cloud(SMALL)
        came_of_it = run([*jobs, last], cloud, policies(1)[policy], duration=3)
        assert len(came_of_it.stranded) == len(came_of_it.used) == SAMPLES
        assert max(came_of_it.used) <= GPUS
        assert 0 < came_of_it.gpu_rejected < came_of_it.gpu_jobs
        assert cloud.used_gpus == 0
        assert sum(standing.used["VCPU"] for standing in cloud.servers.values()) == last.vcpus

    def test_a_job_that_fits_nowhere_is_rejected_and_others_are_not(self) -> None:
        jobs = [Job(8, 64, 1.0, 9.0), Job(8, 64, 2.0, 9.0), Job(1, 8, 3.0, 9.0), Job(0, 8, 4.0, 9.0)]
        came_of_it = run(jobs, Cloud([gpu_server(1), plain_server(8)]), policies(1)["all parts"], duration=5)
        assert (came_of_it.gpu_jobs, came_of_it.gpu_rejected) == (2, 2)  # the first arrived in the warm-up
        assert (came_of_it.cpu_jobs, came_of_it.cpu_rejected) == (1, 0)

    def test_scarce_servers_are_spared_and_jobs_packed(self) -> None:
        cloud = Cloud([gpu_server(1), gpu_server(8), plain_server(15)])
        choose = policies(1)["all parts"]
        homes = []
        for job in (Job(0, 8, 0, 1), Job(1, 8, 0, 1), Job(2, 16, 0, 1), Job(1, 8, 0, 1)):
            plan = plan_for(job.request)
            found = choose(plan, cloud)
            assert found is not None
            cloud.place(plan, *found)
            homes.append((found[0], found[1][2:]))
        # The CPU job stays off the GPUs, and the second single GPU completes the pair that the first one broke.
        assert homes == [(15, ()), (1, (3,)), (1, (4,)), (1, (3,))]


class TestReport:
    def test_the_table_has_the_mean_and_the_spread(self) -> None:
        lines = list(summary({"unordered": [outcome(10), outcome(20, stranded=4)]}).lines())
        assert lines[2].split("  ")[0] == "unordered"
        assert "85 (80..90)" in lines[2]
        assert "15 (10..20)" in lines[2]
        assert "2 (0..4)" in lines[2]

    def test_a_policy_is_judged_seed_by_seed_and_never_flattered(self) -> None:
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


class TestCurves:
    @pytest.mark.parametrize("values", [[0, 0, 0], [1], [], [0.001, 0.002], [3, 70_000], [5, 5]])
    def test_every_line_is_drawn_inside_its_frame(self, values: list[float]) -> None:
        chart = Chart("a < b & c", {"one": values, "<two>": [1, 2]}, "time", 0, 5)
        drawn = ElementTree.fromstring(svg([chart, chart]))
        space = "{http://www.w3.org/2000/svg}"
        lines = drawn.findall(f".//{space}polyline")
        assert len(lines) == 4
        points = [
            float(number) for line in lines for pair in line.get("points", "").split() for number in pair.split(",")
        ]
        assert all(0 <= x <= 720 for x in points[::2])
        assert all(34 <= y <= 260 for y in points[1::2])
        texts = [text.text for text in drawn.iter(f"{space}text")]
        assert texts.count("a < b & c") == texts.count("<two>") == 2
