"""``python -m tests.browser.tasks``: the tasks of docs/how-to in a cloud of 1,500 hosts, with their seconds.

It prints the table of docs/how-to/tasks.md. On a terminal a task is its commands, asked of the server with --url; in
the console it is what somebody types and clicks, until the page has loaded. What changes nothing runs three times, and
the shortest counts. Seconds of commands are those of their CPU, so that other work on the machine matters less.
"""

import os
import re
import resource
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import yaml
from playwright.sync_api import Page, sync_playwright

from tests.browser.cloud import FLAVORS, served
from tests.browser.visits import launched, visit
from tests.ui.racks import fill_racks, host_name, kinds

HOSTS = 1500
TIMES = 3
SPREAD, PACK = ({"fit": {"resources": {"VCPU": {"type": f"{which}Allocated"}}}} for which in ("Least", "Most"))
SHARES = {"classes": ["VCPU", "PGPU"], "tree": {"cloud/research": {"projects": ["blue"]}}, "default": "cloud/others"}

HOSTS_BY_WORD = {"HOST": host_name(203, in_rack=25), "DEAD": host_name(204, in_rack=25)}
TASKS: dict[str, dict[str, list[Any]]] = yaml.safe_load(
    re.sub("HOST|DEAD", lambda word: HOSTS_BY_WORD[word[0]], Path(__file__).with_name("tasks.yaml").read_text("utf-8"))
)
"""A page of docs/how-to -> its commands, and its steps in the console."""


def main(directory: Path) -> None:
    """Do all tasks, and print a row for each."""
    profiles = {"default": SPREAD, "spread": SPREAD, "pack": PACK}
    planner = {"aggregates": kinds(5, 60), "flavors": FLAVORS, "profiles": profiles, "fair_share": SHARES}
    (directory / "known.txt").write_text("51fe32e8-0d26-585d-aaa5-417b048d37dc\n")
    with (
        served(directory, planner, lambda database: fill_racks(database, HOSTS)) as url,
        sync_playwright() as driver,
        visit(launched(driver), url) as seen,
    ):
        for page, task in TASKS.items():
            commands, steps = [shlex.split(line) for line in task.get("commands", [])], task.get("console", [])
            spent = sum(_shortest(lambda words=words: _run(directory, url, words), words) for words in commands)
            terminal = f"{len(commands)} command{'s' if len(commands) > 1 else ''}, {spent:.1f} s" if commands else ""
            clicks = [_shortest(lambda steps=steps: _clicked(seen.open("/"), steps)) for _ in steps[:1]]
            console = f"{len(steps)} step{'s' if len(steps) > 1 else ''}, {clicks[0]:.1f} s" if clicks else ""
            print(f"| [{page}]({page}.md) | {terminal} | {console} |", flush=True)


def _shortest(timed: Callable[[], float], words: Sequence[str] = ()) -> float:
    return min(timed() for _ in range(1 if "--yes" in words else TIMES))


def _run(directory: Path, url: str, words: Sequence[str]) -> float:
    began = _cpu_s()
    command = [str(Path(sys.executable).with_name("placement")), *words, "--url", url]
    done = subprocess.run(
        command,
        cwd=directory,
        env={**os.environ, "OS_PLACEMENT_CONFIG_DIR": str(directory)},
        capture_output=True,
        check=False,
    )
    assert done.returncode in (0, 3), done.stderr
    return _cpu_s() - began


def _cpu_s() -> float:
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def _clicked(page: Page, steps: Sequence[Sequence[str]]) -> float:
    began = time.monotonic()
    for kind, *words in steps:
        _step(page, kind, words)
        page.wait_for_load_state()
    return time.monotonic() - began


def _step(page: Page, kind: str, words: Sequence[str]) -> Any:
    if kind == "fill":
        return page.get_by_label(words[0]).first.fill(words[1])
    if kind == "choose":
        return page.get_by_label(words[0], exact=True).select_option(words[1])
    if kind == "press":
        with page.expect_navigation():
            return page.keyboard.press(words[0])
    with page.expect_navigation():
        return page.get_by_role(kind, name=words[0], exact=True).first.click()  # type: ignore[arg-type]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        main(Path(place))
