"""The command ``openstack`` with osc-placement."""

import json
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest

from tests.clients.conftest import PASSWORD, USER
from tests.servers import plain_environment

VERSION = "1.39"


class OpenStack:
    """The command, pointed at a server."""

    def __init__(self, url: str, *authentication: str) -> None:
        command = str(Path(sys.executable).with_name("openstack"))
        self._start = [command, "--os-endpoint", url, *authentication, "--os-placement-api-version", VERSION]

    def run(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Run a command to its end."""
        environment = plain_environment()
        command = [*self._start, *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    def __call__(self, *arguments: str) -> Any:
        """Run a command that has to succeed, and return its output."""
        done = self.run(*arguments, "-f", "json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


@pytest.fixture(scope="module")
def openstack(noauth2_url: str) -> OpenStack:
    """The command as the README shows it."""
    return OpenStack(noauth2_url, "--os-auth-type", "admin_token", "--os-token", "admin")


def test_a_claim_from_its_provider_to_its_end(openstack: OpenStack):
    host = openstack("resource", "provider", "create", "compute1")["uuid"]
    openstack("resource", "provider", "inventory", "set", host, "--resource", "VCPU=8", "--resource", "MEMORY_MB=1024")
    openstack("resource", "provider", "trait", "set", host, "--trait", "HW_CPU_X86_AVX2")
    (candidate,) = openstack("allocation", "candidate", "list", "--resource", "VCPU=2", "--required", "HW_CPU_X86_AVX2")
    assert candidate["resource provider"] == host
    consumer = str(uuid.uuid4())
    claim = ("--allocation", f"rp={host},VCPU=2", "--project-id", "p", "--user-id", "u", "--consumer-type", "INSTANCE")
    openstack("resource", "provider", "allocation", "set", consumer, *claim)
    (held,) = openstack("resource", "provider", "allocation", "show", consumer)
    assert (held["resource_provider"], held["resources"], held["project_id"]) == (host, {"VCPU": 2}, "p")
    used = {row["resource_class"]: row["usage"] for row in openstack("resource", "provider", "usage", "show", host)}
    assert used == {"VCPU": 2, "MEMORY_MB": 0}
    refused = openstack.run("resource", "provider", "delete", host)
    assert refused.returncode == 1
    assert "Resource provider has allocations" in refused.stderr
    assert openstack.run("resource", "provider", "allocation", "delete", consumer).returncode == 0
    assert openstack.run("resource", "provider", "delete", host).returncode == 0


def test_a_tree_moves_below_another_root(openstack: OpenStack):
    old, new = (openstack("resource", "provider", "create", name)["uuid"] for name in ("old", "new"))
    child = openstack("resource", "provider", "create", "child", "--parent-provider", old)["uuid"]
    openstack("resource", "provider", "set", child, "--name", "child", "--parent-provider", new)
    below = openstack("resource", "provider", "list", "--in-tree", new)
    assert {row["uuid"] for row in below} == {new, child}


def test_what_does_not_exist_is_told_in_one_line(openstack: OpenStack):
    missing = str(uuid.uuid4())
    done = openstack.run("resource", "provider", "show", missing)
    assert (done.returncode, done.stderr) == (1, f"No resource provider with uuid {missing} found (HTTP 404)\n")


def test_without_authentication_the_command_is_refused(noauth2_url: str):
    done = OpenStack(noauth2_url, "--os-auth-type", "none").run("resource", "provider", "list")
    assert done.returncode == 1
    assert "(HTTP 403)" in done.stderr


def test_a_password_lets_its_user_in_and_no_other(http_basic_url: str):
    user = ("--os-auth-type", "http_basic", "--os-username", USER)
    known = OpenStack(http_basic_url, *user, "--os-password", PASSWORD)
    assert known("resource", "provider", "list") == []
    done = OpenStack(http_basic_url, *user, "--os-password", "wrong").run("resource", "provider", "list")
    assert done.returncode == 1
    assert "(HTTP 401)" in done.stderr
