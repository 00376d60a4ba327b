"""The sample files of etc/placement are what oslo's generators produce from the options and rules.

The generators find both through the entry points of the installed package.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from placement.settings.options import list_opts

pytestmark = pytest.mark.exhaustive

SAMPLES = Path(__file__).parents[2] / "etc" / "placement"
OURS = {group or "DEFAULT" for group, _ in list_opts()}


def sections(text: str) -> dict[str, str]:
    """Split a configuration file at its section headings."""
    parts: dict[str, str] = {}
    for part in ("\n" + text).split("\n[")[1:]:
        name, _, body = part.partition("]")
        parts[name] = body.strip()
    return parts


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    directory = tmp_path_factory.mktemp("samples")
    commands = {"placement.conf": "oslo-config-generator", "policy.yaml": "oslopolicy-sample-generator"}
    inputs = {"placement.conf": "config-generator.conf", "policy.yaml": "policy-generator.conf"}
    for name, command in commands.items():
        program = Path(sys.executable).with_name(command)
        subprocess.run(
            [program, f"--config-file={SAMPLES / inputs[name]}", f"--output-file={directory / name}"], check=True
        )
    return {name: (directory / name).read_text() for name in commands}


def test_the_samples_are_current(samples: dict[str, str]) -> None:
    """The text of the libraries' own sections belongs to the libraries and changes with their versions."""
    kept, made = (sections(text) for text in ((SAMPLES / "placement.conf").read_text(), samples["placement.conf"]))
    assert {name: kept[name] for name in OURS} == {name: made[name] for name in OURS}
    assert {"keystone_authtoken", "oslo_policy"} | OURS == kept.keys()
    assert (SAMPLES / "policy.yaml").read_text() == samples["policy.yaml"]


def test_samples_set_nothing() -> None:
    for name in ("placement.conf", "policy.yaml"):
        lines = (SAMPLES / name).read_text().splitlines()
        assert [line for line in lines if line and not line.startswith(("#", "["))] == []


@pytest.fixture
def policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the path of a policy file beside a placement.conf, where the tools of oslo.policy find it."""
    (tmp_path / "placement.conf").write_text("[placement_database]\nconnection = sqlite:////tmp/none\n")
    monkeypatch.setenv("OS_PLACEMENT_CONFIG_DIR", str(tmp_path))
    return tmp_path / "policy.yaml"


def tool(name: str, directory: Path) -> "subprocess.CompletedProcess[str]":
    """Run a tool on our entry point, as an operator does."""
    program = Path(sys.executable).with_name(name)
    arguments = [program, "--namespace", "placement", "--config-file", str(directory / "placement.conf")]
    return subprocess.run(arguments, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("text", "status"),
    [('"placement:usages": "role:reader"', 0), ('"placement:planner:show": "@"', 0), ('"placement:nothing": "@"', 1)],
)
def test_the_validator_knows_our_rules(policy: Path, text: str, status: int) -> None:
    policy.write_text(text + "\n")
    assert tool("oslopolicy-validator", policy.parent).returncode == status


def test_what_repeats_a_default_is_found(policy: Path) -> None:
    policy.write_text('"admin_api": "role:admin"\n"service_api": "role:other"\n')
    done = tool("oslopolicy-list-redundant", policy.parent)
    assert (done.returncode, "admin_api" in done.stdout, "service_api" in done.stdout) == (0, True, False)
