"""Each page of docs/first-day, and README's first steps, done as they stand: the commands work and print what is there.

A command follows ``$``; below it is its output, in which ``...`` stands for anything.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import servers

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "first-day"
BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
END = "end of output"
ANYTHING = re.compile(r"(?<![.#])\.{3}(?!\.)")
"""Three dots, unless they are a part of a bar."""


def steps(text: str) -> Iterator[tuple[str, str]]:
    """Yield each command with its output, from the blocks of a page."""
    for block in BLOCK.findall(text):
        for step in block.split("$ ")[1:] if block.startswith("$ ") else []:
            command, _, output = step.partition("\n")
            yield command, output


def outputs(commands: list[str], directory: Path) -> list[str]:
    """Run commands in one shell in a directory; return what each printed."""
    bin_directory = str(Path(sys.executable).parent)
    environment = servers.plain_environment() | {
        "HOME": str(directory),
        "PATH": f"{bin_directory}:{os.environ['PATH']}",
    }
    script = "".join([f"{command}\nprintf '%s\\n' '{END}'\n" for command in commands])
    done = subprocess.run(
        ["bash", "-c", script], cwd=directory, env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    parts = done.stdout.split(f"{END}\n")
    assert len(parts) == len(commands) + 1, done.stderr
    return parts[:-1]


def is_as_shown(shown: str, printed: str) -> bool:
    parts = ANYTHING.split(shown.rstrip("\n"))
    pattern = ".*".join([re.escape(part) for part in parts])
    return re.fullmatch(pattern, printed.rstrip("\n"), re.DOTALL) is not None


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "etc").symlink_to(ROOT / "etc")
    return tmp_path


@pytest.mark.parametrize("page", ["operator", "client-developer", "ml-platform"])
def test_a_first_day_goes_as_its_page_says(page: str, checkout: Path) -> None:
    port = str(servers.free_port())
    text = (PAGES / f"{page}.md").read_text().replace("placement serve", f"placement serve --port {port}")
    done = [*steps(text.replace("127.0.0.1:8778", f"127.0.0.1:{port}"))]
    printed = outputs([command for command, _shown in done], checkout)
    different = [
        (command, shown, output)
        for (command, shown), output in zip(done, printed, strict=True)
        if not is_as_shown(shown, output)
    ]
    assert different == []


def test_the_first_steps_of_readme_work(checkout: Path) -> None:
    port = str(servers.free_port())
    part = (ROOT / "README.md").read_text().partition("## First steps")[2].partition("Where to go")[0]
    commands = [line.strip() for line in part.splitlines() if line.startswith(("    printf", "    curl"))]
    begin = [f"placement serve --port {port} > log 2>&1 &", f"curl --retry 60 --retry-connrefused -s localhost:{port}/"]
    sent = [command.replace("127.0.0.1:8778", f"127.0.0.1:{port}") for command in commands]
    printed = outputs([*begin, *sent, "kill %1"], checkout)
    assert '"usages":{"VCPU":2}' in printed[-2]
