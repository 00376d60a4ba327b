"""What all commands print: tables, failures as one sentence, and nothing at Ctrl-C. They decide on the content.

Tables fit the terminal; those in boxes look like the reference's, because scripts may parse them.
"""

import shutil
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

import click

from placement.errors import PlacementError

Document = Mapping[str, Any]
"""A server's answer as received."""

GAP = "  "
CUT = "..."
NARROWEST = len(CUT) + 5

LOOK_EVERY_S = 0.1


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


def box(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a table with a header and centred cells."""
    texts = [list(header)] + [[str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    rule = "+" + "+".join("-" * (width + 2) for width in widths) + "+"
    lines = [
        "|" + "|".join(f" {_centred(cell, width)} " for cell, width in zip(row, widths, strict=True)) + "|"
        for row in texts
    ]
    return "\n".join([rule, lines[0], rule, *lines[1:], rule] if rows else [rule, lines[0], rule, rule])


def stack(title: str, cells: Sequence[str]) -> str:
    """Return a single column of multi-line cells, separated by rules."""
    width = max(len(line) for cell in (title, *cells) for line in cell.split("\n"))
    rule = f"+{'-' * (width + 2)}+"
    drawn = ["\n".join(f"| {line.ljust(width)} |" for line in cell.split("\n")) for cell in (title, *cells)]
    return "\n".join([rule, *(part for cell in drawn for part in (cell, rule))])


def _centred(text: str, width: int) -> str:
    """Centre a text; an odd space goes to the right."""
    left = (width - len(text)) // 2
    return " " * left + text + " " * (width - len(text) - left)


class PlainErrors(click.Group):
    """A command group that reports our own errors, and files that cannot be used, as one sentence."""

    def invoke(self, context: click.Context) -> object:
        """Run a subcommand."""
        try:
            return super().invoke(context)
        except PlacementError as error:
            raise click.ClickException(error.message) from error
        except OSError as error:
            if error.filename is None:  # not about a file: click itself ends quietly if a pipe is closed
                raise
            raise click.ClickException(f"{error.filename} cannot be used: {error.strerror}.") from error


class Interrupts:
    """Whether Ctrl-C has been pressed."""

    def __init__(self) -> None:
        self.has_come = False

    def wait(self, seconds: float) -> None:
        """Sleep, but not on after an interrupt."""
        end = time.monotonic() + seconds
        while not self.has_come and (left := end - time.monotonic()) > 0:
            time.sleep(min(left, LOOK_EVERY_S))


@contextmanager
def noted_interrupts() -> Iterator[Interrupts]:
    """Note the first Ctrl-C instead of raising it; a second one is raised, in case that whatever runs hangs."""
    found = Interrupts()

    def note(number: int, frame: FrameType | None) -> None:
        if found.has_come:
            signal.default_int_handler(number, frame)
        found.has_come = True

    before = signal.signal(signal.SIGINT, note)
    try:
        yield found
    finally:
        signal.signal(signal.SIGINT, before)
