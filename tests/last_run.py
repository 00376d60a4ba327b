"""The last result of each environment of tox, in LAST_RUN.md: ``NOTE_RUN=1 tox -m nightly`` writes it.

pytest notes its own runs. After another command of an environment, ``python -m tests.last_run WHAT`` notes that WHAT
has passed: tox gets there only then.
"""

import os
import platform
import sys
from datetime import UTC, datetime
from pathlib import Path

from tests.commits import commit

FILE = Path(__file__).with_name("LAST_RUN.md")
HEADER = """# The last run of each environment

Written by `NOTE_RUN=1 tox -m nightly` and the like; [README.md](README.md) says what each environment proves.

| Environment | Result | Minutes | Commit | Date | Machine |
|---|---|---|---|---|---|
"""


def note_run(result: str, seconds: float | None, *, part: str = "", file: Path = FILE) -> None:
    """Replace the row of the environment that tox runs, if a note is wanted.

    Args:
        result: what came out, in words.
        seconds: how long it took, if that is known.
        part: what the environment ran, if it runs several things.
        file: where the rows are.
    """
    environment = os.environ.get("TOX_ENV_NAME")
    if environment is None or not os.environ.get("NOTE_RUN"):
        return
    rows = {row.split(" | ")[0]: row for row in _rows(file) if row.count("|") == HEADER.count("|") // 2}
    machine = f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"
    minutes = "" if seconds is None else f"{seconds / 60:.0f}"
    name = f"| `{environment}`{f', {part}' if part else ''}"
    cells = [result, minutes, (commit() or "")[:8], f"{datetime.now(UTC):%Y-%m-%d}", machine]
    rows[name] = " | ".join([name, *cells]) + " |"
    file.write_text(HEADER + "".join([f"{row}\n" for _name, row in sorted(rows.items())]))


def _rows(file: Path) -> list[str]:
    return file.read_text().splitlines()[HEADER.count("\n") :] if file.exists() else []


if __name__ == "__main__":
    note_run("passed", None, part=" ".join(sys.argv[1:]))
