"""``python -m tests.browser.tasks``: the tasks of docs/how-to in a cloud of 1,500 hosts, with their seconds.

It prints the table of docs/how-to/tasks.md. On a terminal a task is its commands, asked of the server with --url; in
the console it is what somebody types and clicks, until the page has loaded. What changes nothing runs three times, and
the shortest counts. Seconds of commands are those of their CPU, so that other work on the machine matters less.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

from tests.browser.cloud import FLAVORS, served
from tests.browser.visits import launched, visit
from tests.ui.racks import fill_racks, host_name, kinds

HOSTS = 1500
TIMES = 3
HOST, DEAD = host_name(203, in_rack=25), host_name(204, in_rack=25)
KNOWN = "known.txt"
FLAVOR, TOO_LARGE = "g1.large", "resources=VCPU:97"
SPREAD, PACK = ({"fit": {"resources": {"VCPU": {"type": f"{which}Allocated"}}}} for which in ("Least", "Most"))
SHARES = {"classes": ["VCPU", "PGPU"], "tree": {"cloud/research": {"projects": ["blue"]}}, "default": "cloud/others"}

Commands = Sequence[Sequence[str]]
Step = tuple[str, ...]
SEARCH: Sequence[Step] = (("fill", "Search", HOST), ("press", "Enter"))

TASKS: dict[str, tuple[Commands, Sequence[Step]]] = {
    "what-needs-attention": ((), (("link", "Overview"),)),
    "find-who-is-on-a-host": ((("host", "show", HOST),), SEARCH),
    "find-room-for-a-flavor": (
        (("headroom", FLAVOR),),
        (("link", "Map"), ("fill", "How many more of these fit?", FLAVOR), ("press", "Enter")),
    ),
    "explain-no-candidates": (
        (("explain", TOO_LARGE),),
        (("link", "Try a request"), ("fill", "Query string", TOO_LARGE), ("button", "Try")),
    ),
    "find-stranded-capacity": ((("headroom", "--flavors"),), (("link", "Overview"),)),
    "find-what-changed": ((("journal", "--provider", HOST, "--limit", "20"),), SEARCH),
    "read-the-journal": ((("journal", "--project", "blue", "--limit", "20"),), ()),
    "find-orphans": ((("audit", "--known-consumers", KNOWN),), ()),
    "give-a-tenant-a-share": ((("fair-share",),), (("link", "Fair shares"),)),
    "compare-profiles": (
        (),
        (
            ("link", "Map"),
            ("fill", "How many more of these fit?", FLAVOR),
            ("choose", "Compare profile", "spread"),
            ("choose", "and", "pack"),
            ("button", "Show"),
        ),
    ),
    "drain-a-host": (
        (("host", "drain", HOST), ("host", "drain", HOST, "--yes")),
        (*SEARCH, ("link", "For maintenance")),
    ),
    "remove-a-dead-host": ((("host", "remove", DEAD), ("host", "remove", DEAD, "--yes")), ()),
    "move-a-rack": ((("aggregate", "move", "--from", "rack:b07", "--to", "rack:b09", "--yes"),), ()),
}
"""A page of docs/how-to -> its commands, and its steps in the console."""


def main(directory: Path) -> None:
    """Do all tasks, and print a row for each."""
    profiles = {"default": SPREAD, "spread": SPREAD, "pack": PACK}
    planner = {"aggregates": kinds(5, 60), "flavors": FLAVORS, "profiles": profiles, "fair_share": SHARES}
    (directory / KNOWN).write_text("51fe32e8-0d26-585d-aaa5-417b048d37dc\n")
    with (
        served(directory, planner, lambda database: fill_racks(database, HOSTS)) as url,
        sync_playwright() as driver,
        visit(launched(driver), url) as seen,
    ):
        for page, (commands, steps) in TASKS.items():
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


def _clicked(page: Page, steps: Sequence[Step]) -> float:
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
