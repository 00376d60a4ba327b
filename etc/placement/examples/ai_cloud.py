"""Spread CPU jobs, pack GPU jobs, and keep CPU jobs off the servers with GPUs: the profile ``ai`` at work.

    python etc/placement/examples/ai_cloud.py

starts a server with a throw-away database and its own planner.yaml, and talks to it over HTTP as nova would: it asks
for allocation candidates and claims the first. Needs only the environment in which placement-server is installed.
"""

import contextlib
import json
import subprocess
import sys
import tempfile
import urllib.request
import uuid
from pathlib import Path

CONFIGURATION = """
[api]
auth_strategy = noauth2
[placement_database]
connection = sqlite:///{directory}/placement.sqlite
sync_on_startup = true
[ranking]
planner_file = planner.yaml
"""

PLANNER = """
default_profile: ai
profiles:
  ai:
    fit:
      weight: 10
      resources:
        PGPU: {type: MostAllocated, weight: 2}
        VCPU: {type: LeastAllocated, weight: 1}
    sra:
      weight: 10
      resources: {PGPU: 1}
"""

CLOUD = {
    "cpu-1": {"VCPU": 32},
    "cpu-2": {"VCPU": 32},
    "gpu-1": {"VCPU": 16, "PGPU": 8},
    "gpu-2": {"VCPU": 16, "PGPU": 8},
}
CPU_JOB = "VCPU:4"
GPU_JOB = "VCPU:4,PGPU:2"


class Cloud:
    """The example's servers, as providers of a placement server."""

    def __init__(self, url):
        self.url = url
        self.names = {}
        for name, inventories in CLOUD.items():
            provider = self.ask("POST", "/resource_providers", {"name": name})["uuid"]
            body = {
                "resource_provider_generation": 0,
                "inventories": {resource: {"total": total} for resource, total in inventories.items()},
            }
            self.ask("PUT", f"/resource_providers/{provider}/inventories", body)
            self.names[provider] = name

    def ask(self, method, path, body=None):
        """Send a request and return the JSON of the answer."""
        headers = {"X-Auth-Token": "admin", "OpenStack-API-Version": "placement 1.39"}
        data = None
        if body is not None:
            headers["Content-Type"] = "application/json"
            data = json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers, method=method)  # noqa: S310 - http alone
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
            text = answer.read()
        return json.loads(text) if text else None

    def candidates(self, job):
        """Return the candidates for a job, best first."""
        return self.ask("GET", f"/allocation_candidates?resources={job}")["allocation_requests"]

    def scores(self, candidates):
        """Return the scores of candidates."""
        return self.ask("POST", "/planner/v1/scores", {"allocation_requests": candidates})["scores"]

    def claim(self, candidate):
        """Allocate a candidate to a new consumer."""
        owner = {"project_id": "demo", "user_id": "demo", "consumer_generation": None, "consumer_type": "INSTANCE"}
        self.ask("PUT", f"/allocations/{uuid.uuid4()}", {**candidate, **owner})

    def server_of(self, candidate):
        """Return the name of a candidate's server."""
        return self.names[next(iter(candidate["allocations"]))]

    def used(self, name):
        """Return the usage of a server as text."""
        provider = next(uuid for uuid, known in self.names.items() if known == name)
        usages = self.ask("GET", f"/resource_providers/{provider}/usages")["usages"]
        return ", ".join(f"{usages[resource]} of {total} {resource}" for resource, total in CLOUD[name].items())


def show(cloud, title, job):
    """Print the candidates of a job with their scores."""
    candidates = cloud.candidates(job)
    print(f"{title}, {job}")
    for candidate, score in zip(candidates, cloud.scores(candidates), strict=True):
        parts = f"fit {score['fit']:5.1f}, sra {score['sra']:5.1f}"
        print(f"  {cloud.server_of(candidate)}  {score['total']:5.1f}  ({parts})")


def tell(cloud):
    """Print the effect of the profile."""
    print("Empty servers: candidates in order, with total score (and its parts).\n")
    show(cloud, "A CPU job", CPU_JOB)
    show(cloud, "A GPU job", GPU_JOB)
    print("\nJobs arrive, and each takes the first candidate:")
    for kind, job in [("CPU", CPU_JOB), ("GPU", GPU_JOB)] * 4:
        first = cloud.candidates(job)[0]
        cloud.claim(first)
        print(f"  {kind} job -> {cloud.server_of(first)}")
    print("\nIn use afterwards:")
    for name in CLOUD:
        print(f"  {name}  {cloud.used(name)}")
    print("\nThe next jobs:")
    show(cloud, "A CPU job", CPU_JOB)
    show(cloud, "A GPU job", GPU_JOB)


@contextlib.contextmanager
def server(directory):
    """Run a placement server in a directory and yield its URL."""
    (directory / "placement.conf").write_text(CONFIGURATION.format(directory=directory))
    (directory / "planner.yaml").write_text(PLANNER)
    command = [Path(sys.executable).with_name("placement"), "serve", "--port", "0", "--workers", "1"]
    command += ["--config-file", directory / "placement.conf"]
    with (
        (directory / "server.log").open("w") as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True) as process,  # noqa: S603
    ):
        try:
            lines = iter(process.stdout.readline, "")
            words = next((line.split() for line in lines if "http://" in line), None)
            if words is None:
                raise SystemExit((directory / "server.log").read_text())
            yield next(word for word in words if word.startswith("http://"))
        finally:
            process.terminate()


def main():
    """Run the example."""
    with tempfile.TemporaryDirectory() as directory, server(Path(directory)) as url:
        tell(Cloud(url))


if __name__ == "__main__":
    main()
