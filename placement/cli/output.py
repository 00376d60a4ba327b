"""What all commands print: lists in every format, failures as one sentence, and nothing at Ctrl-C.

Commands decide on the content. A list fits the terminal: bars go first, then texts are wrapped, then the last columns
go; no name and no number is ever cut.
"""

import json
import shutil
import signal
import sys
import textwrap
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import zip_longest
from types import FrameType
from typing import Any, NamedTuple, TypeVar

import click
import yaml

from placement.domain.quantities import with_separators
from placement.errors import PlacementError

Document = Mapping[str, Any]
"""A server's answer as received."""

Command = TypeVar("Command", bound=Callable[..., Any])
Item = TypeVar("Item")

FORMATS = ("table", "json", "csv", "yaml")

GAP = "  "
BAR = 20
READABLE = 12
"""Texts are not wrapped to fewer characters than this, unless their longest word is shorter still."""

ALWAYS_SHOWN = 2
"""So many columns stay, however narrow the terminal is."""

_JOINED = "\N{NO-BREAK SPACE}"
"""Stands for a blank at which no line may end, until the line is printed."""

NOTHING_FITS = SOMETHING_FOUND = 3
"""Exit status of a command that did its work: 1 means that it failed, 2 that it was called wrongly."""

LOOK_EVERY_S = 0.1

QUIET_S = 2.0
"""What ends sooner needs no bar."""


def available_width() -> int | None:
    """Return the terminal's width; None if standard output is not a terminal and lines may have any length."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def printable(name: str) -> str:
    """Replace unprintable characters in a name, which anybody may have chosen and which could move the cursor."""
    return "".join(letter if letter.isprintable() else "?" for letter in name)


class Bar(NamedTuple):
    """A cell with a bar: anything above 0 is visible, however small, and anything above 1 fills it."""

    part: float


class PrintedCell(NamedTuple):
    """A cell that people read as an unbreakable text, or as a list of them, and programs as a value."""

    text: str | Sequence[str]
    value: object


def whole(name: str) -> PrintedCell:
    """Return a cell with a name that stays in one piece even if it has blanks."""
    return PrintedCell(name, name)


@dataclass(frozen=True, slots=True)
class PrintedTable:
    """Rows below headings, the most important column first. A column without a heading holds bars.

    A cell is a text, which may be wrapped between words, a number, a list of unbreakable texts, a Bar or a PrintedCell.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[object]]

    def chosen(self, names: Sequence[str]) -> "PrintedTable":
        """Return the named columns in that order.

        Raises:
            UsageError: there is no such column.
        """
        for name in names:
            if name not in self.header or not name:
                headings = ", ".join(filter(None, self.header))
                raise click.UsageError(f"There is no column {name!r}; the columns are: {headings}.")
        return self._only([self.header.index(name) for name in names])

    def _only(self, places: Sequence[int]) -> "PrintedTable":
        return PrintedTable(
            [self.header[place] for place in places], [[row[place] for place in places] for row in self.rows]
        )

    def records(self) -> list[dict[str, object]]:
        """Return the rows for programs: heading -> value."""
        places = [place for place, name in enumerate(self.header) if name]
        return [{self.header[place]: _value(row[place]) for place in places} for row in self.rows]

    def csv(self, *, with_header: bool = True) -> str:
        """Return the table as CSV."""
        from placement.ui.page import csv_text  # noqa: PLC0415 - large

        return csv_text([name for name in self.header if name], self.records(), with_header=with_header)

    def lines(self, width: int | None = None, *, all_columns: bool = False) -> Iterator[str]:
        """Yield the lines, none if there are no rows. They fit ``width`` if the columns that stay do.

        All columns stay if asked for, otherwise at least the first two.
        """
        if not self.rows:
            return
        cells = [[row[place] for row in self.rows] for place in range(len(self.header))]
        columns = [_Column(heading, cells[place]) for place, heading in enumerate(self.header)]
        shown = columns
        if width is not None and _total([column.widest for column in shown]) > width:
            shown = [column for column in columns if column.heading]
            while (
                not all_columns and len(shown) > ALWAYS_SHOWN and _total([column.narrowest for column in shown]) > width
            ):
                shown = shown[:-1]
        yield from _drawn(shown, width)
        if left_out := [column.heading for column in columns if column.heading and column not in shown]:
            yield f"(not shown for want of room: {', '.join(left_out)}; --columns chooses)"


class _Column:
    """A column as it is printed."""

    def __init__(self, heading: str, cells: Sequence[object]) -> None:
        self.heading = heading
        self.texts = [heading, *map(_text, cells)]
        values = [value for cell in cells if (value := _value(cell)) not in ("", None)]
        self._is_of_numbers = bool(values) and all(isinstance(value, int | float) for value in values)

    @property
    def widest(self) -> int:
        """How wide it is if nothing is wrapped."""
        return max(map(len, self.texts))

    @property
    def narrowest(self) -> int:
        """How wide it is if everything is wrapped."""
        words = max([len(word) for text in self.texts for word in text.split(" ")])
        return max(words, min(READABLE, max([len(text) for text in self.texts[1:]], default=0)))

    def aligned(self, text: str, room: int) -> str:
        """Return a text with blanks on its left if the column is of numbers, else on its right."""
        return text.rjust(room) if self._is_of_numbers else text.ljust(room)


def _drawn(columns: Sequence[_Column], width: int | None) -> Iterator[str]:
    widths = _fitted([column.widest for column in columns], [column.narrowest for column in columns], width)
    texts = zip(*[column.texts for column in columns], strict=True)
    for number, row in enumerate(texts):
        wrapped_cells = [wrapped(text, room) for text, room in zip(row, widths, strict=True)]
        for parts in zip_longest(*wrapped_cells, fillvalue=""):
            cells = [column.aligned(part, room) for column, part, room in zip(columns, parts, widths, strict=True)]
            yield GAP.join(cells).rstrip().replace(_JOINED, " ")
        if number == 0:
            yield GAP.join(["-" * room for room in widths])


def _value(cell: object) -> object:
    if isinstance(cell, PrintedCell):
        return cell.value
    if isinstance(cell, str):
        return cell.strip()
    return ", ".join(cell) if isinstance(cell, list) else cell


def _text(cell: object) -> str:
    if isinstance(cell, Bar):
        filled = min(BAR, int(-(-cell.part * BAR // 1)))
        return "#" * filled + "." * (BAR - filled)
    if isinstance(cell, int | float):
        return with_separators(cell)
    if isinstance(cell, PrintedCell):
        cell = [cell.text] if isinstance(cell.text, str) else list(cell.text)
    if isinstance(cell, list):
        return ", ".join([printable(part).replace(" ", _JOINED) for part in cell])
    return printable(str(cell))


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(GAP) * (len(widths) - 1)


def _fitted(widths: Sequence[int], narrowest: Sequence[int], total: int | None) -> list[int]:
    """Narrow the widest columns, one character at a time, until the table fits or no column can be narrowed."""
    fitted = list(widths)
    while total is not None and _total(fitted) > total:
        widest = max(range(len(fitted)), key=lambda place: (fitted[place] > narrowest[place], fitted[place]))
        if fitted[widest] <= narrowest[widest]:
            break
        fitted[widest] -= 1
    return fitted


def yaml_text(document: object) -> str:
    """Return a document as YAML."""
    return yaml.safe_dump(json.loads(json.dumps(document)), sort_keys=False, allow_unicode=True)


def wrapped(text: str, width: int | None, *, indent: str = "") -> list[str]:
    """Wrap a text between words."""
    if width is None or len(text) <= width:
        return [text]
    return textwrap.wrap(text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


@dataclass(frozen=True, slots=True)
class Report:
    """What a command found: a document for programs, and sentences and tables for people; CSV is the first table."""

    document: object
    blocks: Sequence[str | PrintedTable]

    def lines(self, width: int | None = None, *, columns: Sequence[str] = ()) -> Iterator[str]:
        """Yield the lines for people, with the chosen columns of the first table."""
        first = next((block for block in self.blocks if isinstance(block, PrintedTable)), None)
        for block in self.blocks:
            if isinstance(block, str):
                yield from wrapped(block, width)
            else:
                is_chosen = block is first and bool(columns)
                yield from (block.chosen(columns) if is_chosen else block).lines(width, all_columns=is_chosen)

    def csv(self, columns: Sequence[str] = ()) -> str:
        """Return the first table as CSV, which is empty if there is none."""
        first = next((block for block in self.blocks if isinstance(block, PrintedTable)), PrintedTable((), ()))
        return (first.chosen(columns) if columns else first).csv()


def listed(command: Command) -> Command:
    """Add --format, --columns and --json to a command that calls ``show``."""
    options = (
        click.option(
            "-f",
            "--format",
            "_format",
            type=click.Choice(FORMATS),
            default="table",
            show_default=True,
            help="How to print; csv is the (first) table, with exact amounts.",
            expose_value=False,
            callback=_remember,
        ),
        click.option(
            "--json", "_json", is_flag=True, help="The same as --format json.", expose_value=False, callback=_remember
        ),
        click.option(
            "--columns",
            "_columns",
            metavar="NAME,...",
            default="",
            expose_value=False,
            callback=_remember,
            help="Columns of the (first) table and their order; the last ones go first if the terminal is narrow.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def _remember(context: click.Context, option: click.Parameter, value: object) -> None:
    context.meta[str(option.name)] = value


def chosen_format() -> str:
    """Return the format that the running command was asked for."""
    meta = click.get_current_context().meta
    return "json" if meta["_json"] else str(meta["_format"])


def chosen_columns() -> list[str]:
    """Return the columns that the running command was asked for; empty for all."""
    return [name for part in click.get_current_context().meta["_columns"].split(",") if (name := part.strip())]


def show(report: Report) -> None:
    """Print what a command found, in the format that was asked for."""
    chosen, columns = chosen_format(), chosen_columns()
    if chosen == "json":
        click.echo(json.dumps(report.document, indent=2))
    elif chosen == "yaml":
        click.echo(yaml_text(report.document), nl=False)
    elif chosen == "csv":
        click.echo(report.csv(columns), nl=False)
    else:
        for line in report.lines(available_width(), columns=columns):
            click.echo(line)


@contextmanager
def watched(items: Iterable[Item], label: str, *, length: int | None = None) -> Iterator[Iterable[Item]]:
    """Yield items, of which a bar on a terminal shows how many are done; a log or a pipe gets nothing."""
    if not sys.stderr.isatty():
        yield items
        return
    with click.progressbar(items, length=length, label=label, file=sys.stderr) as bar:
        yield bar


@contextmanager
def progress() -> Iterator[Callable[[str, float], None]]:
    """Yield a function that shows a step, and which part of all is done: on a terminal, and after two seconds."""
    begin = time.monotonic()
    with ExitStack() as shown:
        bars: list[Any] = []

        def tell(step: str, done: float) -> None:
            if not bars and sys.stderr.isatty() and time.monotonic() - begin > QUIET_S:
                bar = click.progressbar(
                    length=100, file=sys.stderr, item_show_func=lambda item: item, update_min_steps=0
                )
                bars.append(shown.enter_context(bar))
            for bar in bars:
                bar.update(max(0, int(100 * done) - bar.pos), step)

        yield tell


class PlainErrors(click.Group):
    """A command group that reports our own errors, and files that cannot be used, as one sentence."""

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the arguments name, or suggest a similar one."""
        try:
            return super().resolve_command(context, args)
        except click.UsageError as error:
            similar = get_close_matches(args[0], self.list_commands(context))
            if similar and "Did you mean" not in error.format_message():
                hint = f"Did you mean {' or '.join(map(repr, similar))}?"
                raise click.UsageError(f"No such command {args[0]!r}. {hint}", context) from error
            raise

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
        while not self.has_come and (remaining_s := end - time.monotonic()) > 0:
            time.sleep(min(remaining_s, LOOK_EVERY_S))


@contextmanager
def noted_interrupts() -> Iterator[Interrupts]:
    """Note the first Ctrl-C instead of raising it; a second one is raised, in case that whatever runs hangs."""
    interrupts = Interrupts()

    def note(number: int, frame: FrameType | None) -> None:
        if interrupts.has_come:
            signal.default_int_handler(number, frame)
        interrupts.has_come = True

    before = signal.signal(signal.SIGINT, note)
    try:
        yield interrupts
    finally:
        signal.signal(signal.SIGINT, before)
