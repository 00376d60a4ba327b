"""Line charts as SVG, with a grid and a legend, independent of what they show."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import floor, log10

WIDTH, HEIGHT = 720, 300
LEFT, RIGHT, TOP, BOTTOM = 56, 170, 34, 40
COLOURS = ("#000000", "#8c8c8c", "#e69f00", "#56b4e9", "#009e73", "#d55e00", "#cc79a7", "#0072b2")
"""Distinguishable to colour-blind readers (Okabe and Ito)."""
GRID_LINES = 5


@dataclass(frozen=True, slots=True)
class Chart:
    """Lines: name -> values in equal steps from ``first`` to ``last``. The axis of values starts at 0."""

    title: str
    lines: Mapping[str, Sequence[float]]
    x_label: str
    first: float
    last: float


def svg(charts: Sequence[Chart]) -> str:
    """Return charts, stacked vertically, as one SVG document."""
    height = HEIGHT * len(charts)
    size = f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
    ]
    for number, chart in enumerate(charts):
        parts += [f'<g transform="translate(0 {number * HEIGHT})">', *_drawn(chart), "</g>"]
    return "\n".join([*parts, "</svg>", ""])


def _drawn(chart: Chart) -> Iterator[str]:
    step = _step(max((max(values, default=0) for values in chart.lines.values()), default=0))
    yield _text(LEFT, 20, chart.title, "start", bold=True)
    yield from _axes(chart, step)
    for number, (name, values) in enumerate(chart.lines.items()):
        colour = COLOURS[number % len(COLOURS)]
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in _points(values, step * GRID_LINES))
        yield f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.8"/>'
        y = TOP + 14 + 20 * number
        x = WIDTH - RIGHT + 14
        yield f'<line x1="{x}" y1="{y - 4}" x2="{x + 20}" y2="{y - 4}" stroke="{colour}" stroke-width="3"/>'
        yield _text(x + 26, y, name, "start")


def _axes(chart: Chart, step: float) -> Iterator[str]:
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    for number in range(GRID_LINES + 1):
        y = bottom - (bottom - TOP) * number / GRID_LINES
        yield f'<line x1="{LEFT}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}" stroke="#dddddd"/>'
        yield _text(LEFT - 6, y + 4, f"{step * number:g}", "end")
        x = LEFT + (right - LEFT) * number / GRID_LINES
        yield _text(x, bottom + 16, f"{chart.first + (chart.last - chart.first) * number / GRID_LINES:g}", "middle")
    yield _text((LEFT + right) / 2, bottom + 34, chart.x_label, "middle")


def _points(values: Sequence[float], top: float) -> Iterator[tuple[float, float]]:
    width, height = WIDTH - RIGHT - LEFT, HEIGHT - BOTTOM - TOP
    for number, value in enumerate(values):
        yield LEFT + width * number / max(1, len(values) - 1), HEIGHT - BOTTOM - height * value / top


def _step(highest: float) -> float:
    """Return a round grid step of which at most ``GRID_LINES`` are needed to reach the highest value."""
    if highest <= 0:
        return 1.0
    power = 10.0 ** floor(log10(highest / GRID_LINES))
    return next(step for digit in (1, 2, 4, 5, 10, 20) if (step := digit * power) * GRID_LINES >= highest)


def _text(x: float, y: float, text: str, anchor: str, *, bold: bool = False) -> str:
    weight = ' font-weight="bold"' if bold else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{weight}>{escape(text)}</text>'
