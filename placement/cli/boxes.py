"""Boxed tables as the reference's commands print them, because scripts may parse them."""

from collections.abc import Sequence


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
