"""The devstack plugin, called as devstack calls it, with stub functions that record their calls."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

DEVSTACK = """
set -o errexit -o nounset
declare -A GITREPO=([placement-server]=https://example.org/placement-server)
declare -A GITBRANCH=([placement-server]=stable) GITDIR=([placement-server]=/opt/stack/placement-server)
function define_plugin { echo "define_plugin $*"; }
function pip_uninstall { echo "pip_uninstall $*"; return 1; }
function setup_develop { echo "setup_develop $*"; }
# What lib/placement has set by then.
PLACEMENT_REPO=https://opendev.org/openstack/placement PLACEMENT_BRANCH=master PLACEMENT_DIR=/opt/stack/placement
"""


def _bash(script: str) -> list[str]:
    done = subprocess.run(["bash", "-c", DEVSTACK + script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def test_the_settings_have_placement_cloned_from_the_plugin():
    said = _bash('source devstack/settings; echo "$PLACEMENT_REPO $PLACEMENT_BRANCH $PLACEMENT_DIR"')
    repository = "https://example.org/placement-server stable /opt/stack/placement-server"
    assert said == ["define_plugin placement-server", repository]


@pytest.mark.parametrize(
    ("phase", "asked"),
    [
        ("stack pre-install", ["pip_uninstall openstack-placement"]),
        ("stack install", ["setup_develop /opt/stack/placement-server keystone,cors,mariadb"]),
        ("stack post-config", []),
        ("stack extra", []),
        ("stack test-config", []),
        ("unstack", []),
        ("clean", ["pip_uninstall placement-server"]),
    ],
)
def test_each_phase_asks_devstack_for_what_is_missing(phase: str, asked: list[str]):
    """A package that is not installed cannot be removed, which is not an error."""
    assert _bash(f"source devstack/settings > /dev/null; source devstack/plugin.sh {phase}") == asked


def test_devstack_finds_the_name_of_the_package():
    """With exactly this command: inc/python, _setup_package_with_constraints_edit."""
    assert _bash("""awk '/^name.*=/ {print $3}' setup.cfg""") == ["placement-server"]
