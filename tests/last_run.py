"""The last result of each environment of tox, in LAST_RUN.md: ``NOTE_RUN=1 tox -m nightly`` writes it."""

import os
import platform
from datetime import UTC, datetime
from pathlib import Path

from tests.commits import commit

FILE = Path(__file__).with_name("LAST_RUN.md")
HEADER = """# The last run of each environment

Written by `NOTE_RUN=1 tox -m nightly` and the like; [README.md](README.md) says what each environment proves.

| Environment | Result | Minutes | Commit | Date | Machine |
|---|---|---|---|---|---|
"""


def note_run(outcomes: dict[str, int], seconds: float, file: Path = FILE) -> None:
    """Replace the row of the environment that tox runs, if a note is wanted.

    Args:
        outcomes: how many tests passed, failed, were skipped.
        seconds: how long all of them took.
        file: where the rows are.
    """
    environment = os.environ.get("TOX_ENV_NAME")
    if environment is None or not os.environ.get("NOTE_RUN"):
        return
    rows = {row.split(" | ")[0]: row for row in _rows(file) if row.count("|") == HEADER.count("|") // 2}
    result = ", ".join([f"{count} {outcome}" for outcome, count in outcomes.items() if count])
    machine = f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"
    cells = [result, f"{seconds / 60:.0f}", (commit() or "")[:8], f"{datetime.now(UTC):%Y-%m-%d}", machine]
    rows[f"| `{environment}`"] = " | ".join([f"| `{environment}`", *cells]) + " |"
    file.write_text(HEADER + "".join([f"{row}\n" for _name, row in sorted(rows.items())]))


def _rows(file: Path) -> list[str]:
    return file.read_text().splitlines()[HEADER.count("\n") :] if file.exists() else []
