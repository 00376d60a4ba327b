"""Plays rounds on two servers up to the first difference that is not known, and says what was done.

A ``Comparison`` knows what the answers of two servers must have in common: beside openstack-placement
(known_differences.py) less than beside an earlier release (release/comparison.py).
"""

import argparse
import itertools
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

from tests.differential.requests import Request
from tests.differential.sides import DATABASES, Pair
from tests.http_calls import Answer

STRETCH = 50
"""The number of rounds after which the servers are replaced by others, with another database or configuration."""
SHOWN_CHARACTERS = 1500
PLANNER = "/planner/v1"

Drawn = Iterable[Request | Callable[[], Request]]
"""The requests of a round; those that depend on earlier answers are drawn when they are sent."""


class Comparison:
    """What two servers must have in common in one round; a subclass says how answers are compared."""

    def reset(self, pair: Pair) -> None:
        """Give both servers the same cloud; the requests follow."""
        pair.reset()

    def differences(self, pair: Pair, request: Request, expected: Answer, given: Answer) -> Sequence[str]:
        """Return how two answers differ, the most important first."""
        raise NotImplementedError

    def known_difference(self, pair: Pair, request: Request, expected: Answer, given: Answer) -> str | None:
        """Return the name of the deliberate difference that two answers show, or None."""
        raise NotImplementedError

    def parts(self, request: Request, expected: Answer, given: Answer) -> bool:
        """Tell whether the two clouds may differ after answers with a known difference."""
        raise NotImplementedError

    def settle(self, pair: Pair, request: Request) -> None:
        """Undo what a request has left behind on one side alone."""

    def difference_of_contents(self, pair: Pair) -> Sequence[str]:
        """Return how the databases differ after a round."""
        return ()

    def learn(self, request: Request, expected: Answer) -> None:
        """Take note of an answer, from which later requests may be drawn."""


class Round(NamedTuple):
    """What is sent, and how the answers are compared."""

    comparison: Comparison
    drawn: Drawn


@dataclass(frozen=True, slots=True)
class Mismatch:
    """An answer that differs, with the requests as they were sent; the last one has it, unless only tables differ."""

    sent: Sequence[Request]
    expected: Answer | None
    given: Answer | None
    differences: Sequence[str]


@dataclass(slots=True)
class Tally:
    """What the rounds did, as evidence that they were not idle."""

    requests: "Counter[str]" = field(default_factory=Counter)
    known: "Counter[str]" = field(default_factory=Counter)

    def count(self, request: Request, answer: Answer) -> None:
        """Count a request by what it is and how it was answered."""
        path = request.path if request.path.startswith(("/planner", "/allocation_c")) else "others"
        document = answer.document if answer.status == 200 else None
        is_empty = isinstance(document, dict) and document.get("allocation_requests") == []
        self.requests[f"{request.method} {path} {'none' if is_empty else answer.status}"] += 1

    def __str__(self) -> str:
        lines = [f"  {what:45} {count}" for what, count in sorted(self.requests.items())]
        lines += [f"known difference {name}: {count}" for name, count in sorted(self.known.items())]
        return "\n".join([*lines, f"{self.requests.total()} requests"])


def play(pair: Pair, comparison: Comparison, drawn: Drawn, tally: Tally) -> Mismatch | None:
    """Send the requests of a round; return the first difference that is not known."""
    comparison.reset(pair)
    sent: list[Request] = []
    for each in drawn:
        request = (each() if callable(each) else each).resolved(pair.reference.generation)
        sent.append(request)
        expected, given = pair.ask(request)
        tally.count(request, expected)
        comparison.learn(request, expected)
        if differences := comparison.differences(pair, request, expected, given):
            name = comparison.known_difference(pair, request, expected, given)
            if name is None:
                return Mismatch(sent, expected, given, differences)
            tally.known[name] += 1
            if comparison.parts(request, expected, given):
                return None
        comparison.settle(pair, request)
    differences = comparison.difference_of_contents(pair)
    return Mismatch(sent, None, None, differences) if differences else None


def changes_something(request: Request) -> bool:
    """Tell whether a request may change anything; most POSTs to the planner are questions."""
    return request.is_write and (not request.path.startswith(PLANNER) or request.path == f"{PLANNER}/claims")


def shortened(pair: Pair, comparison: Comparison, mismatch: Mismatch) -> Mismatch:
    """Return the same mismatch after fewer requests, if it also shows after some of the writes alone."""
    *before, last = mismatch.sent
    kept = [each for each in before if changes_something(each)]
    shortest = mismatch
    for part in ([], kept, *[kept[:at] + kept[at + 1 :] for at in range(len(kept))]):
        again = play(pair, comparison, [*part, last], Tally())
        if again is not None and len(again.sent) == len(part) + 1 < len(shortest.sent):
            shortest = again
    return shortest


def mismatch_text(mismatch: Mismatch, repeat: str) -> str:
    """Return the requests as commands for a shell, with the answers and the command that repeats them as comments."""
    lines = [f"\n# again: {repeat}", *[request.curl() for request in mismatch.sent]]
    lines += [f"# {line}" for line in mismatch.differences]
    for name, answer in (("expected", mismatch.expected), ("given", mismatch.given)):
        if answer is not None:
            document = answer.document
            body = json.dumps(document) if document is not None else answer.body.decode("utf-8", "replace")
            lines.append(f"# {name}: {answer.status} {body[:SHOWN_CHARACTERS]}")
    return "\n".join(lines)


class Opponent(NamedTuple):
    """The other server.

    Args:
        command: the module that plays rounds beside it.
        variants: the names of the configurations to compare in.
        pair: starts both servers on a kind of database in a variant.
        round: draws a round of at most so many requests.
    """

    command: str
    variants: tuple[str, ...]
    pair: Callable[[str, str], AbstractContextManager[Pair]]
    round: Callable[[Random, int], Round]


@dataclass(frozen=True, slots=True)
class Stretch:
    """Rounds on the same two servers."""

    opponent: Opponent
    numbers: range
    seed: int
    kind: str
    variant: str
    requests: int

    def play(self, tally: Tally, *, more: int) -> list[str]:
        """Play it; return a text for each mismatch, and stop after as many more."""
        texts: list[str] = []
        with self.opponent.pair(self.kind, self.variant) as pair:
            for number in self.numbers:
                played = self.opponent.round(Random(f"{self.seed}/{number}"), self.requests)
                if mismatch := play(pair, *played, tally):
                    small = shortened(pair, played.comparison, mismatch)
                    texts.append(mismatch_text(small, self._command(number)))
                if len(texts) > more:
                    break
        return texts

    def _command(self, number: int) -> str:
        options = f"--seed {self.seed} --requests {self.requests} --database {self.kind} --variant {self.variant}"
        again = f"python -m {self.opponent.command} {options} --first {number} --rounds 1"
        earlier = f"--first {self.numbers[0]} --rounds {number - self.numbers[0] + 1}"
        return f"{again}\n# if that shows nothing: {earlier}"


def main(opponent: Opponent) -> int:
    """Run the rounds selected on the command line; return 1 after a mismatch."""
    options = _options(opponent)
    tally, mismatches, begun = Tally(), 0, time.monotonic()
    first, last = options.first, options.first + options.rounds
    print(f"seed {options.seed}, rounds {first} to {last - 1}", flush=True)
    for borders in itertools.pairwise([first, *range(first - first % STRETCH + STRETCH, last, STRETCH), last]):
        number = borders[0] // STRETCH
        kind = options.database[number % len(options.database)]
        variant = options.variant[(options.seed + number) % len(options.variant)]
        stretch = Stretch(opponent, range(*borders), options.seed, kind, variant, options.requests)
        texts = stretch.play(tally, more=options.more - mismatches)
        mismatches += len(texts)
        print("".join(texts), flush=True)
        print(f"{tally.requests.total()} requests, {mismatches} mismatches", file=sys.stderr, flush=True)
        if mismatches > options.more:
            break
    print(f"\n{tally}\n{mismatches} mismatches in {time.monotonic() - begun:.0f} s")
    return 1 if mismatches else 0


def _options(opponent: Opponent) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=f"python -m {opponent.command}", description=sys.modules["__main__"].__doc__)
    parser.add_argument("--rounds", type=int, default=300, help="how many rounds (default: %(default)s)")
    parser.add_argument("--requests", type=int, default=32, help="of a round beside the release (default: %(default)s)")
    parser.add_argument("--seed", type=int, help="the run's seed (default: a new one)")
    parser.add_argument("--first", type=int, default=0, help="the first round's number, to repeat one")
    kinds = (*DATABASES, "mariadb")
    parser.add_argument("--database", choices=kinds, nargs="+", default=DATABASES, help="take these in turn")
    variants = opponent.variants
    parser.add_argument("--variant", choices=variants, nargs="+", default=[*variants], help="take these in turn")
    parser.add_argument("--more", type=int, default=0, help="go on after this many mismatches")
    options = parser.parse_args()
    if options.seed is None:
        options.seed = random.SystemRandom().randrange(10**6)
    return options
