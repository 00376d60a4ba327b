"""Run rounds and print the first mismatch, reduced; CI runs the same rounds through pytest.

python -m tests.differential --rounds 3000                        a long run with a new seed
python -m tests.differential --seed 1 --first 17 --rounds 1       one round again
"""

import argparse
import random
import sys
import time

from tests.differential.generate.plan import plan
from tests.differential.rounds import Tally, mismatch_script, play, tally_text
from tests.differential.shrink import shrunk
from tests.differential.sides import DATABASES, compared_projects


def main() -> int:
    """Run the rounds selected on the command line; return 1 after a mismatch."""
    options = _options()
    numbers = range(options.first, options.first + options.rounds)
    print(f"seed {options.seed}, rounds {numbers[0]} to {numbers[-1]}", flush=True)
    tally, mismatches, begun = Tally(), 0, time.monotonic()
    with compared_projects(options.database) as pairs:
        for number in numbers:
            pair = pairs[number % len(pairs)]
            requests = plan(options.seed, number)
            mismatch = play(pair, requests, tally)
            if mismatch:
                mismatches += 1
                small = shrunk(pair, requests, mismatch, seconds=options.shrink)
                print("\n" + mismatch_script(small, f"round {number} on {pair.subject.name}"), flush=True)
            if mismatches > options.more:
                break
            _show_progress(f"round {number}, {mismatches} mismatches")
    print(f"\n{tally_text(tally)}\n{mismatches} mismatches in {time.monotonic() - begun:.0f} s")
    return 1 if mismatches else 0


def _show_progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r{text} ", end="", file=sys.stderr, flush=True)


def _options() -> argparse.Namespace:
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="python -m tests.differential", description=__doc__, formatter_class=form)
    parser.add_argument("--rounds", type=int, default=300, help="how many rounds (default: %(default)s)")
    parser.add_argument("--seed", type=int, help="the run's seed (default: a new one)")
    parser.add_argument("--first", type=int, default=0, help="the first round's number, to repeat one")
    kinds = (*DATABASES, "mariadb")
    parser.add_argument("--database", choices=kinds, nargs="+", default=DATABASES, help="take these in turn")
    parser.add_argument("--more", type=int, default=0, help="go on after this many mismatches")
    parser.add_argument("--shrink", type=float, default=90, help="seconds to spend on making a mismatch small")
    options = parser.parse_args()
    if options.seed is None:
        options.seed = random.SystemRandom().randrange(10**6)
    return options


if __name__ == "__main__":
    sys.exit(main())
