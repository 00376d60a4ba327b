"""Run rounds beside the release and print mismatches, each with the command that repeats it.

python -m tests.differential.release --rounds 3000                       a long run with a new seed
python -m tests.differential.release --seed 1 --first 17 --rounds 1      one round again
"""

import argparse
import itertools
import json
import random
import sys
import time

from tests.differential.answers import Answer
from tests.differential.release.rounds import Mismatch, Tally, chance_of, play, shortened
from tests.differential.release.sides import VARIANTS, running_pair

DATABASES = ("sqlite", "postgresql")
STRETCH = 50
"""The number of rounds after which the servers are replaced by others with another configuration."""


def main() -> int:
    """Run the rounds selected on the command line; return 1 after a mismatch."""
    options = _options()
    tally, mismatches, begun = Tally(), 0, time.monotonic()
    print(f"seed {options.seed}, rounds {options.first} to {options.first + options.rounds - 1}", flush=True)
    for stretch in _stretches(options.first, options.rounds):
        mismatches += _play_stretch(options, stretch, tally=tally)
        print(f"{tally.requests.total()} requests, {mismatches} mismatches", file=sys.stderr, flush=True)
        if mismatches > options.more:
            break
    spent = time.monotonic() - begun
    print(f"\n{_tally_text(tally)}\n{mismatches} mismatches in {spent:.0f} s")
    return 1 if mismatches else 0


def _stretches(first: int, rounds: int) -> list[range]:
    last = first + rounds
    borders = [first, *range(first - first % STRETCH + STRETCH, last, STRETCH), last]
    return [range(*pair) for pair in itertools.pairwise(borders)]


def _play_stretch(options: argparse.Namespace, numbers: range, *, tally: Tally) -> int:
    stretch, mismatches = numbers[0] // STRETCH, 0
    kind = options.database[stretch % len(options.database)]
    variant = options.variant[(options.seed + stretch) % len(options.variant)]
    with running_pair(kind, variant) as pair:
        for number in numbers:
            mismatch = play(pair, chance_of(options.seed, number), requests=options.requests, tally=tally)
            if mismatch is not None:
                mismatches += 1
                again = f"--seed {options.seed} --requests {options.requests} --database {kind} --variant {variant}"
                print(mismatch_text(shortened(pair, mismatch), again, (numbers[0], number)), flush=True)
                if mismatches > options.more:
                    break
    return mismatches


def mismatch_text(mismatch: Mismatch, options: str, rounds: tuple[int, int]) -> str:
    """Return a description of a mismatch; ``rounds`` are the first one that the servers played, and its own."""
    first, number = rounds
    command = f"python -m tests.differential.release {options}"
    lines = [f"\n# mismatch in round {number}, cloud of {len(mismatch.rows.cloud)} stored providers"]
    lines += [f"# again: {command} --first {number} --rounds 1"]
    lines += [f"# if that shows nothing: {command} --first {first} --rounds {number - first + 1}"]
    lines += [request.curl() for request in mismatch.sent]
    lines += [f"# {mismatch.difference}"]
    for name, answer in (("release", mismatch.expected), ("subject", mismatch.given)):
        lines += [f"# {name}: {_shown(answer)}"] if answer else []
    return "\n".join(lines)


def _shown(answer: Answer) -> str:
    document = answer.document
    text = json.dumps(document) if document is not None else answer.body.decode("utf-8", "replace")
    return f"{answer.status} {text[:1500]}"


def _tally_text(tally: Tally) -> str:
    lines = [f"  {what:45} {count}" for what, count in sorted(tally.requests.items())]
    lines += [f"known difference {name}: {count}" for name, count in sorted(tally.known.items())]
    return "\n".join([*lines, f"{tally.requests.total()} requests"])


def _options() -> argparse.Namespace:
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog="python -m tests.differential.release", description=__doc__, formatter_class=form
    )
    parser.add_argument("--rounds", type=int, default=300, help="how many rounds (default: %(default)s)")
    parser.add_argument("--requests", type=int, default=32, help="of each round (default: %(default)s)")
    parser.add_argument("--seed", type=int, help="the run's seed (default: a new one)")
    parser.add_argument("--first", type=int, default=0, help="the first round's number, to repeat one")
    parser.add_argument("--database", choices=DATABASES, nargs="+", default=DATABASES, help="take these in turn")
    parser.add_argument("--variant", choices=VARIANTS, nargs="+", default=[*VARIANTS], help="take these in turn")
    parser.add_argument("--more", type=int, default=0, help="go on after this many mismatches")
    options = parser.parse_args()
    if options.seed is None:
        options.seed = random.SystemRandom().randrange(10**6)
    return options


if __name__ == "__main__":
    sys.exit(main())
