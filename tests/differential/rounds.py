"""Plays rounds on this server and openstack-placement up to the first difference that is not known.

What the answers must have in common, and what may differ, is in known_differences.py.
"""

import argparse
import itertools
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random

from tests.differential.generate.candidates import candidates
from tests.differential.generate.cloud import cloud
from tests.differential.generate.malformed import malformed
from tests.differential.generate.reads import read, whole_state
from tests.differential.generate.world import World
from tests.differential.generate.writes import write
from tests.differential.known_differences import compared, known_difference
from tests.differential.requests import Request
from tests.differential.sides import DATABASES, Pair, reference_pair
from tests.http_calls import Answer

STRETCH = 50
"""The number of rounds after which the servers are replaced by others, with another database."""
QUERIES_FIRST = 12
ROUNDS_OF_WRITES = 5
SHOWN_CHARACTERS = 1500


def plan(world: World) -> Iterator[Request]:
    """Yield a cloud and queries, then writes and queries in turn, and finally reads of everything."""
    yield from cloud(world)
    for _ in range(QUERIES_FIRST):
        yield candidates(world)
    for _ in range(ROUNDS_OF_WRITES):
        for draw, least, most in ((write, 1, 6), (candidates, 1, 4), (read, 0, 3), (malformed, 0, 3)):
            for _ in range(world.random.randint(least, most)):
                yield draw(world)
    yield from whole_state(world)


@dataclass(frozen=True, slots=True)
class Mismatch:
    """An answer that differs, with the requests as they were sent; the last one has it."""

    sent: Sequence[Request]
    expected: Answer
    given: Answer
    differences: Sequence[str]

    def in_words(self, repeat: str) -> str:
        """Return the requests as commands for a shell; as comments the answers, and the command that repeats them."""
        lines = [f"\n# again: {repeat}", *[request.curl() for request in self.sent]]
        lines += [f"# {line}" for line in self.differences]
        for name, answer in (("expected", self.expected), ("given", self.given)):
            document = answer.document
            body = json.dumps(document) if document is not None else answer.body.decode("utf-8", "replace")
            lines.append(f"# {name}: {answer.status} {body[:SHOWN_CHARACTERS]}")
        return "\n".join(lines)


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


def play(pair: Pair, requests: Iterable[Request], tally: Tally) -> Mismatch | None:
    """Send the requests of a round to empty servers; return the first difference that is not known."""
    pair.reset()
    sent: list[Request] = []
    for unresolved in requests:
        request = unresolved.resolved(pair.reference.generation)
        sent.append(request)
        expected, given = pair.ask(request)
        tally.count(request, expected)
        if differences := compared(pair, request, expected, given):
            name = known_difference(pair, request, expected, given)
            if name is None:
                return Mismatch(sent, expected, given, differences)
            tally.known[name] += 1
            if request.is_write and (expected.status < 300) != (given.status < 300):
                return None  # One server has written something that the other has not.
        if request.is_write:
            # The reference leaves consumers behind when a write is refused or empty; the next with null would get 409.
            pair.reference.forget_hidden_consumers()
    return None


def shortened(pair: Pair, mismatch: Mismatch) -> Mismatch:
    """Return the same mismatch after fewer requests, if it also shows after some of the writes alone."""
    *before, last = mismatch.sent
    kept = [request for request in before if request.is_write]
    shortest = mismatch
    for part in ([], kept, *[kept[:at] + kept[at + 1 :] for at in range(len(kept))]):
        again = play(pair, [*part, last], Tally())
        if again is not None and len(again.sent) == len(part) + 1 < len(shortest.sent):
            shortest = again
    return shortest


@dataclass(frozen=True, slots=True)
class Stretch:
    """Rounds on the same two servers."""

    numbers: range
    seed: int
    kind: str

    def play(self, tally: Tally, *, more: int) -> list[str]:
        """Play it; return a text for each mismatch, and stop after as many more."""
        texts: list[str] = []
        with reference_pair(self.kind) as pair:
            for number in self.numbers:
                if mismatch := play(pair, plan(World(Random(f"{self.seed}/{number}"))), tally):
                    texts.append(shortened(pair, mismatch).in_words(self._command(number)))
                if len(texts) > more:
                    break
        return texts

    def _command(self, number: int) -> str:
        again = f"python -m tests.differential --seed {self.seed} --database {self.kind} --first {number} --rounds 1"
        earlier = f"--first {self.numbers[0]} --rounds {number - self.numbers[0] + 1}"
        return f"{again}\n# if that shows nothing: {earlier}"


def main() -> int:
    """Run the rounds selected on the command line; return 1 after a mismatch."""
    options = _options()
    tally, mismatches, begun = Tally(), 0, time.monotonic()
    first, last = options.first, options.first + options.rounds
    print(f"seed {options.seed}, rounds {first} to {last - 1}", flush=True)
    for borders in itertools.pairwise([first, *range(first - first % STRETCH + STRETCH, last, STRETCH), last]):
        kind = options.database[borders[0] // STRETCH % len(options.database)]
        texts = Stretch(range(*borders), options.seed, kind).play(tally, more=options.more - mismatches)
        mismatches += len(texts)
        print("".join(texts), flush=True)
        print(f"{tally.requests.total()} requests, {mismatches} mismatches", file=sys.stderr, flush=True)
        if mismatches > options.more:
            break
    print(f"\n{tally}\n{mismatches} mismatches in {time.monotonic() - begun:.0f} s")
    return 1 if mismatches else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.differential", description=sys.modules["__main__"].__doc__)
    parser.add_argument("--rounds", type=int, default=300, help="how many rounds (default: %(default)s)")
    parser.add_argument("--seed", type=int, help="the run's seed (default: a new one)")
    parser.add_argument("--first", type=int, default=0, help="the first round's number, to repeat one")
    kinds = (*DATABASES, "mariadb")
    parser.add_argument("--database", choices=kinds, nargs="+", default=DATABASES, help="take these in turn")
    parser.add_argument("--more", type=int, default=0, help="go on after this many mismatches")
    options = parser.parse_args()
    if options.seed is None:
        options.seed = random.SystemRandom().randrange(10**6)
    return options
