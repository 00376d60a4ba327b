"""``placement simulate`` decides as the server does: the same jobs, one after the other, get the same places."""

import pytest
from flask import Flask

from placement.cli.simulation.cloud import LEVELS, Cloud, Job, Load, SimulatedServer, servers, trace
from placement.cli.simulation.policies import PROFILES, policies
from placement.domain.search_plan import plan_for
from placement.settings import PlannerSettings, RankingSettings
from tests.api.conftest import with_settings
from tests.clouds import Cloud as Built
from tests.clouds import Provider
from tests.stored_clouds import stored

SERVERS = servers(2, plain=3, with_gpus=3)
JOBS = trace(4, Load(gpu=1.1, cpu=1.3, duration=3), gpus=3 * 8, vcpus=3 * 64)[:40]


def described(server: SimulatedServer, provider: int) -> Provider:
    """Return a provider of the simulation as one that can be created over HTTP; its name is its id."""
    columns = server.providers
    children = [described(server, int(child)) for child in columns.ids[columns.parents == provider]]
    inventories = {name: amount for (place, name), amount in server.capacities.items() if place == provider}
    traits = [LEVELS[0]] if children and provider != server.root else []
    traits += [LEVELS[1]] if provider in server.switches else []
    return Provider(str(provider), tuple(children), inventories, tuple(traits))


def asked_of(job: Job) -> str:
    parts = []
    for group in job.request.groups:
        wanted = ",".join(f"{name}:{amount}" for name, amount in group.resources.items())
        parts.append(f"resources{group.suffix}={wanted}")
    return "/allocation_candidates?limit=1&group_policy=isolate&" + "&".join(parts)


@pytest.mark.any_database
@pytest.mark.parametrize("policy", ["unordered", *PROFILES])
def test_the_server_gives_every_job_the_same_place(app: Flask, policy: str) -> None:
    planner = PlannerSettings(profiles=PROFILES, default_profile="fit" if policy == "unordered" else policy)
    ranking = RankingSettings(enabled=policy != "unordered")
    api = with_settings(app, planner=planner, ranking=ranking)

    built: Built = stored(api.app, *(described(server, server.root) for server in SERVERS))
    cloud, choose = Cloud(SERVERS), policies(1)[policy]
    placed = 0
    for job in JOBS:
        plan = plan_for(job.request)
        found = choose(plan, cloud)
        answers = api.get(asked_of(job)).json["allocation_requests"]
        assert len(answers) == (found is not None)
        if found is None:
            continue
        taken: dict[str, dict[str, int]] = {}
        for slot, provider in zip(plan.slots, found[1], strict=True):
            for name, amount in slot.resources:
                taken.setdefault(built.providers[str(provider)], {})[name] = amount
        assert {uuid: entry["resources"] for uuid, entry in answers[0]["allocations"].items()} == taken
        cloud.place(plan, *found)
        body = {"allocations": answers[0]["allocations"], "project_id": "p", "user_id": "u"}
        status, _answer = api("PUT", f"/allocations/{job_uuid(placed)}", "1.12", body)
        assert status == 204
        placed += 1
    assert 0 < placed < len(JOBS)


def job_uuid(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012}"
