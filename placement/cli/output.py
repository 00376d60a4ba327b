"""Plain text output: tables that fit the terminal. The commands decide on the content."""

import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Document = Mapping[str, Any]
"""A server's answer as received."""

GAP = "  "
CUT = "..."
NARROWEST = len(CUT) + 5


def available_width() -> int | None:
    """Return the terminal's width; None if standard output is not a terminal and lines may have any length."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def printable(name: str) -> str:
    """Replace unprintable characters in a name, which anybody may have chosen and which could move the cursor."""
    return "".join(letter if letter.isprintable() else "?" for letter in name)


def table(header: Sequence[str], rows: Sequence[Sequence[object]], *, width: int | None = None) -> Iterator[str]:
    """Yield the lines of a table, truncating cells where it would exceed ``width``."""
    texts = [list(header)] + [[str(cell) for cell in row] for row in rows]
    widths = _fitted([max(map(len, column)) for column in zip(*texts, strict=True)], width)
    rule = ["-" * cells for cells in widths]
    for row in [texts[0], rule, *texts[1:]]:
        cells = (_cut(cell, room).ljust(room) for cell, room in zip(row, widths, strict=True))
        yield GAP.join(cells).rstrip()


def _fitted(widths: list[int], total: int | None) -> list[int]:
    """Narrow the widest columns, one character at a time, until the table fits or no column can be narrowed."""
    fitted = list(widths)
    while total is not None and sum(fitted) + len(GAP) * (len(fitted) - 1) > total:
        widest = fitted.index(max(fitted))
        if fitted[widest] <= NARROWEST:
            break
        fitted[widest] -= 1
    return fitted


def _cut(cell: str, room: int) -> str:
    return cell if len(cell) <= room else cell[: room - len(CUT)] + CUT
