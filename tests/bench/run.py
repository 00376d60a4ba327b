"""Runs the cases cloud by cloud, on servers that are started once for each cloud."""

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import TypeVar

from tests.bench import claims, sampling
from tests.bench.cases import Case, ClaimCase, OrderCase, OwnCase, Place, StampedeCase
from tests.bench.claims import ClaimSeries
from tests.bench.cluster import Say
from tests.bench.same import difference
from tests.bench.sampling import Series, Spread, Subject, spread
from tests.bench.sides import SIDES, Answer, Caller, Order, Side, Starter, TookTooLong
from tests.bench.work import Get, candidate_count

T = TypeVar("T", Case, ClaimCase)

MAX_S = 300
"""How long our server may take; a search with a budget must never take longer."""

STAMPEDE_S = 2
"""The longest time for stampeding clients: three orders take turns, and there are many claims per second."""


@dataclass(frozen=True, slots=True)
class Options:
    """How thoroughly to measure. ``patience_s`` is how long the reference may take for one answer."""

    pairs: int
    patience_s: float
    claim_seconds: float


@dataclass(slots=True)
class Row:
    """The measurements of a case. ``check`` states whether the answers were the same."""

    case: Case
    reference: Series
    ours: Series
    floor: Series
    size: int = 0
    candidates: int | None = None
    check: str = ""


@dataclass(frozen=True, slots=True)
class OwnRow:
    """The measurements of two kinds of work on our server."""

    case: OwnCase
    first: Series
    second: Series


@dataclass(frozen=True, slots=True)
class ClaimRow:
    """The measurements of claiming clients."""

    case: ClaimCase
    reference: ClaimSeries
    ours: ClaimSeries


@dataclass(frozen=True, slots=True)
class OrderRow:
    """The measurements of one request, unordered and ordered."""

    case: OrderCase
    unordered: Series
    ordered: Series

    def per_tree_us(self) -> Spread:
        """Return the cost of ordering for each tree of the cloud, pair by pair."""
        pairs = zip(self.ordered.samples, self.unordered.samples, strict=True)
        return spread([(after.cpu_ms - before.cpu_ms) * 1000 / self.case.trees for after, before in pairs])


@dataclass(frozen=True, slots=True)
class StampedeRow:
    """The measurements of clients that claim the first candidate, in each order."""

    case: StampedeCase
    series: dict[Order, ClaimSeries]


class Run:
    """Measures cases with the same options."""

    def __init__(self, starter: Starter, options: Options, say: Say) -> None:
        self._starter = starter
        self._options = options
        self._say = say

    def compare(self, cases: Iterable[Case]) -> Iterator[Row]:
        """Measure the reference, ours and the floor in turn."""
        with self._starter.floor() as floor:
            for place, group in _by_place(cases):
                with self._both(place) as sides:
                    for case in group:
                        self._say(f"{place}: {case.name}")
                        yield self._row(case, *sides, floor)

    def compare_own(self, cases: Iterable[OwnCase]) -> Iterator[OwnRow]:
        """Measure two kinds of work on our server in turn."""
        for case in cases:
            self._say(case.name)
            with contextlib.ExitStack() as stack:
                places = dict.fromkeys([case.first[0], case.second[0]])
                sides = {place: stack.enter_context(self._side("ours", place)) for place in places}
                subjects = [Subject(sides[place], work(), timeout_s=MAX_S) for place, work in (case.first, case.second)]
                sampling.measure(subjects, pairs=self._options.pairs)
                yield OwnRow(case, subjects[0].series, subjects[1].series)

    def compare_claims(self, cases: Iterable[ClaimCase]) -> Iterator[ClaimRow]:
        """Let clients claim on both servers."""
        chosen = self._options
        for place, group in _by_place(cases):
            with self._both(place) as sides:
                for case in group:
                    self._say(f"{place}: {case.name}, {case.clients} clients")
                    found = claims.measure_claims(
                        sides, case.query, clients=case.clients, pairs=chosen.pairs, seconds=chosen.claim_seconds
                    )
                    yield ClaimRow(case, *found)

    def compare_orders(self, cases: Iterable[OrderCase]) -> Iterator[OrderRow]:
        """Measure our requests unordered and ordered."""
        for case in cases:
            self._say(f"{case.cloud}: {case.name}, unordered and ordered")
            with self._orders(case.cloud, [Order.NONE, Order.BEST_FIRST]) as sides:
                subjects = [Subject(side, case.work(), timeout_s=MAX_S) for side in sides]
                sampling.measure(subjects, pairs=self._options.pairs)
                yield OrderRow(case, *[subject.series for subject in subjects])

    def compare_stampedes(self, cases: Iterable[StampedeCase]) -> Iterator[StampedeRow]:
        """Let clients claim the first candidate, in each order."""
        chosen = self._options
        for case in cases:
            self._say(f"{case.cloud}: {case.name}, {case.clients} clients")
            with self._orders(case.cloud, list(Order)) as sides:
                found = claims.measure_claims(
                    sides,
                    case.query,
                    clients=case.clients,
                    pairs=chosen.pairs,
                    seconds=min(chosen.claim_seconds, STAMPEDE_S),
                    choose=itemgetter(0),
                )
                yield StampedeRow(case, dict(zip(Order, found, strict=True)))

    @contextlib.contextmanager
    def _orders(self, cloud: str, orders: Sequence[Order]) -> Iterator[list[Side]]:
        with contextlib.ExitStack() as stack:
            yield [stack.enter_context(self._side("ours", Place(cloud, order=order))) for order in orders]

    def _row(self, case: Case, theirs: Side, ours: Side, floor: Side) -> Row:
        answer = self._first_answer(case, ours)
        size = len(answer.body) if answer else 0
        reference = Subject(theirs, case.work(), timeout_s=self._options.patience_s)
        mine = Subject(ours, case.work(), timeout_s=MAX_S)
        least = Subject(floor, _Stored(size, case.work().requests), timeout_s=MAX_S)
        if case.hopeless:
            sampling.measure_once(reference)
            sampling.measure([mine, least], pairs=self._options.pairs)
        else:
            sampling.measure([reference, mine, least], pairs=self._options.pairs)
        row = Row(case, reference.series, mine.series, least.series, size)
        if answer:
            row.candidates = candidate_count(answer.document())
            row.check = self._check(case, answer, theirs, failed=reference.series.took_too_long)
        return row

    def _first_answer(self, case: Case, ours: Side) -> Answer | None:
        """Return our answer where the work is a read."""
        work = case.work()
        return work.do(ours.caller(timeout_s=MAX_S))[0] if isinstance(work, Get) else None

    def _check(self, case: Case, answer: Answer, theirs: Side, *, failed: bool) -> str:
        """Return in words whether the reference's answer is the same."""
        found = candidate_count(answer.document())
        if case.expected is not None and found != case.expected:
            return f"WRONG: {found} candidates, not {case.expected}"
        if failed:
            return "no answer to compare"
        work, caller = case.work(), theirs.caller(timeout_s=self._options.patience_s)
        assert isinstance(work, Get)
        path, _, limit = work.path.partition("&limit=")
        try:
            whole = caller("GET", path) if limit else None
            found_difference = difference(answer, caller("GET", work.path), whole)
        except TookTooLong:
            theirs.stop()
            return "not compared: too long without a limit"
        return f"DIFFERENT: {found_difference}" if found_difference else "same"

    @contextlib.contextmanager
    def _both(self, place: Place) -> Iterator[tuple[Side, Side]]:
        with contextlib.ExitStack() as stack:
            first, second = (stack.enter_context(self._side(name, place)) for name in SIDES)
            yield first, second

    def _side(self, name: str, place: Place) -> contextlib.AbstractContextManager[Side]:
        return self._starter.side(name, place.cloud, fill=place.fill, order=place.order)


@dataclass(frozen=True, slots=True)
class _Stored:
    """Sends as many requests as some other work to an application that does nothing."""

    size: int
    requests: int

    def do(self, caller: Caller) -> list[Answer]:
        """Request stored bytes."""
        return [caller("GET", f"/{self.size}") for _ in range(self.requests)]

    def undo(self, caller: Caller) -> None:
        """Do nothing: nothing was changed."""


def _by_place(cases: Iterable[T]) -> Iterator[tuple[Place, Sequence[T]]]:
    """Yield cases by place, in the order of first appearance."""
    found: dict[Place, list[T]] = {}
    for case in cases:
        found.setdefault(case.place, []).append(case)
    yield from found.items()
