"""The results as Markdown: first the bars, then all measurements."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from tests.bench.cases import Bar
from tests.bench.claims import times_as_fast
from tests.bench.run import ClaimRow, OrderRow, OwnRow, Row, StampedeRow
from tests.bench.sampling import Series, Spread, ratios, spread
from tests.bench.sides import Order
from tests.bench.statements import StatementRow


@dataclass(slots=True)
class Results:
    """All measurements of one run."""

    patience_s: float
    rows: list[Row] = field(default_factory=list)
    own: list[OwnRow] = field(default_factory=list)
    claims: list[ClaimRow] = field(default_factory=list)
    orders: list[OrderRow] = field(default_factory=list)
    stampedes: list[StampedeRow] = field(default_factory=list)
    statements: list[StatementRow] = field(default_factory=list)


def markdown(results: Results) -> str:
    """Return all tables that have rows."""
    parts = [
        _section("The bars", BAR_COLUMNS, _bars(results)),
        _section("The same work on both", ROW_COLUMNS, (_row(row, results.patience_s) for row in results.rows)),
        _section("Claims", CLAIM_COLUMNS, map(_claim_row, results.claims)),
        _section("Ours against ours", OWN_COLUMNS, map(_own_row, results.own)),
        _section("Best first: what order costs", ORDER_COLUMNS, map(_order_row, results.orders)),
        _section("Best first: many clients at once", STAMPEDE_COLUMNS, map(_stampede_row, results.stampedes)),
        _section("The floor: single statements", STATEMENT_COLUMNS, map(_statement_row, results.statements)),
    ]
    return "\n".join(part for part in parts if part)


BAR_COLUMNS = ("work", "bar", "aim", "measured", "verdict")
ROW_COLUMNS = (
    "cloud",
    "work",
    "candidates",
    "KiB",
    "reference: CPU ms (server + database)",
    "ours: CPU ms",
    "times, quartiles",
    "latency ms, reference / ours",
    "MiB, reference / ours",
    "bare Flask: CPU ms",
    "answers",
)
CLAIM_COLUMNS = (
    "cloud",
    "clients",
    "reference: claims/s",
    "ours",
    "times, quartiles",
    "CPU ms a claim, reference / ours",
    "409 of the reference",
    "409 of ours",
)
OWN_COLUMNS = ("work", "first: CPU ms", "second: CPU ms", "times, quartiles", "latency ms", "MiB")
ORDER_COLUMNS = ("cloud", "work", "unordered: CPU ms", "ordered: CPU ms", "times, quartiles", "microseconds a tree")
STAMPEDE_COLUMNS = ("cloud", "clients", "order", "claims/s", "times unordered, quartiles", "CPU ms a claim", "409")
STATEMENT_COLUMNS = ("cloud", "statement", "rows", "database CPU ms", "client CPU ms", "latency ms")


def _section(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(cells) + " |" for cells in rows]
    if not lines:
        return ""
    head = ["| " + " | ".join(columns) + " |", "| " + " | ".join("---" for _ in columns) + " |"]
    return "\n".join([f"## {title}", "", *head, *lines, ""])


def _bars(results: Results) -> Iterator[Sequence[str]]:
    for row in results.rows:
        name = f"{row.case.place}: {row.case.name}"
        if row.case.times and row.ours.samples and len(row.reference.samples) == len(row.ours.samples):
            yield _bar(name, row.case.times, ratios(row.reference, row.ours))
        if row.case.cpu_ms:
            yield _bar(name, row.case.cpu_ms, spread([sample.cpu_ms for sample in row.ours.samples]), unit=" ms")
    for claim in results.claims:
        if claim.case.times:
            name = f"{claim.case.place}: claims a second, {claim.case.clients} clients"
            yield _bar(name, claim.case.times, times_as_fast(claim.ours, claim.reference))
    for own in results.own:
        yield _bar(own.case.name, own.case.times, ratios(own.second, own.first))

    for order in results.orders:
        name = f"{order.case.cloud}: {order.case.name}, ordered to unordered"
        if order.case.times:
            yield _bar(name, order.case.times, ratios(order.ordered, order.unordered))
        if order.case.per_tree_us:
            yield _bar(f"{name}, a tree", order.case.per_tree_us, order.per_tree_us(), unit=" us")
    for stampede in results.stampedes:
        name = f"{stampede.case.cloud}: claims of the first a second, {stampede.case.clients} clients, to unordered"
        found = times_as_fast(stampede.series[Order.SPREAD], stampede.series[Order.NONE])
        yield _bar(name, stampede.case.times, found)


def _bar(name: str, bar: Bar, measured: Spread, *, unit: str = "x") -> Sequence[str]:
    missed = bar.missed_by(measured.median)
    verdict = "met" if missed <= 1 else f"**missed by {missed:.2f}x**"
    sign = "" if bar.at_least else "at most "
    aim = "" if bar.aim is None else f"{bar.aim:g}{unit}"
    return name, f"{sign}{bar.value:g}{unit}", aim, _quartiles(measured, unit), verdict


def _row(row: Row, patience_s: float) -> Sequence[str]:
    late = row.reference.took_too_long
    known = bool(row.reference.samples)
    comparable = known and len(row.reference.samples) == len(row.ours.samples)
    return (
        str(row.case.place),
        row.case.name,
        "" if row.candidates is None else f"{row.candidates}",
        _number(row.size / 1024) if row.size else "",
        f"> {patience_s:g} s" if late else _cpu(row.reference),
        _cpu(row.ours),
        _quartiles(ratios(row.reference, row.ours), "") if comparable else _single(row),
        f"{_number(row.reference.latency_ms)} / {_number(row.ours.latency_ms)}" if known else _latency(row.ours),
        f"{row.reference.peak_memory_mib:.0f} / {row.ours.peak_memory_mib:.0f}",
        _number(row.floor.median("cpu_ms")),
        row.check,
    )


def _single(row: Row) -> str:
    """Return the ratio where the reference was tried once."""
    if not row.reference.samples:
        return ""
    return f"{row.reference.median('cpu_ms') / row.ours.median('cpu_ms'):.0f} (one try)"


def _latency(series: Series) -> str:
    return f"- / {_number(series.latency_ms)}"


def _claim_row(row: ClaimRow) -> Sequence[str]:
    return (
        str(row.case.place),
        str(row.case.clients),
        f"{row.reference.median('per_second'):.2f}",
        f"{row.ours.median('per_second'):.1f}",
        _quartiles(times_as_fast(row.ours, row.reference), ""),
        f"{_number(row.reference.median('cpu_ms'))} / {_number(row.ours.median('cpu_ms'))}",
        _refused(row.reference.refused, row.reference.claims),
        _refused(row.ours.refused, row.ours.claims),
    )


def _refused(refused: dict[str, int], claims: int) -> str:
    counts = ", ".join(f"{count} {code}" for code, count in sorted(refused.items())) or "0"
    return f"{counts} (of {claims + sum(refused.values())})"


def _own_row(row: OwnRow) -> Sequence[str]:
    return (
        row.case.name,
        _cpu(row.first),
        _cpu(row.second),
        _quartiles(ratios(row.second, row.first), ""),
        f"{_number(row.first.latency_ms)} / {_number(row.second.latency_ms)}",
        f"{row.first.peak_memory_mib:.0f} / {row.second.peak_memory_mib:.0f}",
    )


def _order_row(row: OrderRow) -> Sequence[str]:
    return (
        row.case.cloud,
        row.case.name,
        _cpu(row.unordered),
        _cpu(row.ordered),
        _quartiles(ratios(row.ordered, row.unordered), ""),
        _quartiles(row.per_tree_us(), ""),
    )


def _stampede_row(row: StampedeRow) -> Sequence[str]:
    """Return one row whose cells have a line for each order."""
    unordered = row.series[Order.NONE]
    each = [
        (
            order.value,
            f"{series.median('per_second'):.1f}",
            _quartiles(times_as_fast(series, unordered), ""),
            _number(series.median("cpu_ms")),
            _refused(series.refused, series.claims),
        )
        for order, series in row.series.items()
    ]
    return row.case.cloud, str(row.case.clients), *["<br>".join(cells) for cells in zip(*each, strict=True)]


def _statement_row(row: StatementRow) -> Sequence[str]:
    numbers = (row.database_ms, row.client_ms, row.latency_ms)
    return (str(row.place), row.name, str(row.rows), *(f"{number:.2f}" for number in numbers))


def _cpu(series: Series) -> str:
    server, database = series.median("server_ms"), series.median("database_ms")
    return f"{_number(server + database)} ({_number(server)} + {_number(database)})"


def _quartiles(values: Spread, unit: str) -> str:
    low, median, high = (_number(value) for value in (values.low, values.median, values.high))
    return f"**{median}{unit}** ({low}..{high})"


def _number(value: float) -> str:
    """Return a number with about three digits."""
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
