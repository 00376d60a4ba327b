"""The sample files of etc/placement are what oslo's generators make of the options and rules.

The generators find both through the entry points of the installed package.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from placement.settings.options import list_opts

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


@pytest.mark.parametrize("section", sorted(OURS))
def test_the_sample_configuration_is_current(samples: dict[str, str], section: str) -> None:
    assert sections((SAMPLES / "placement.conf").read_text())[section] == sections(samples["placement.conf"])[section]


def test_the_sample_configuration_shows_the_libraries_sections_too(samples: dict[str, str]) -> None:
    """Their text is the libraries' and changes with their versions."""
    assert {"keystone_authtoken", "oslo_policy"} | OURS == set(sections((SAMPLES / "placement.conf").read_text()))


def test_the_sample_policy_is_current(samples: dict[str, str]) -> None:
    assert (SAMPLES / "policy.yaml").read_text() == samples["policy.yaml"]


def test_samples_set_nothing() -> None:
    for name in ("placement.conf", "policy.yaml"):
        lines = (SAMPLES / name).read_text().splitlines()
        assert [line for line in lines if line and not line.startswith(("#", "["))] == []
