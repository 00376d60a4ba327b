"""The examples of etc/placement/examples run, and the documentation shows what they print."""

import shlex
import subprocess
import sys
from pathlib import Path

from tests.cli.commands import Command
from tests.http_calls import HttpCalls
from tests.servers import plain_environment

SOURCE = Path(__file__).parents[2]


def test_the_page_shows_what_the_example_of_a_cloud_for_machine_learning_prints(tmp_path: Path) -> None:
    example = SOURCE / "etc" / "placement" / "examples" / "ai_cloud.py"
    done = subprocess.run(
        [sys.executable, example], cwd=tmp_path, env=plain_environment(), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    shown = (
        (SOURCE / "docs" / "how-to" / "choose-a-profile.md")
        .read_text()
        .partition("a test compares it. -->\n```text\n")[2]
    )
    assert shown.partition("```")[0] == done.stdout
    assert list(tmp_path.iterdir()) == []


def test_the_page_registers_hosts_that_its_first_request_fits(placement: Command) -> None:
    shown = (
        (SOURCE / "docs" / "how-to" / "plan-devices.md").read_text().partition("    python etc/placement/examples/")[2]
    )
    command = shlex.split(shown.partition("\n\n")[0].replace("\\\n", ""))
    with placement.running("serve", "--port", "0", "--workers", "1") as server:
        url = server.url()
        command[command.index("--url") + 1] = url
        example = SOURCE / "etc" / "placement" / "examples" / command[0]
        subprocess.run([sys.executable, example, *command[1:]], check=True, capture_output=True)
        _status, found = HttpCalls(url)("GET", "/resource_providers?required=CUSTOM_GPU_A100,CUSTOM_GPU", "1.39")
    assert len(found["resource_providers"]) == 8


def test_the_example_of_a_mirror_says_what_it_wants() -> None:
    example = SOURCE / "etc" / "placement" / "examples" / "mirror.py"
    done = subprocess.run([sys.executable, example, "--help"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "mirror.py URL TOKEN" in done.stderr
    assert "Traceback" not in done.stderr
