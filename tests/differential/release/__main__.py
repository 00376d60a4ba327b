"""Compares this server with an earlier release: random requests of every route give the same answers, to the byte."""

import sys

from tests.differential.release.comparison import RELEASE
from tests.differential.rounds import main

if __name__ == "__main__":
    sys.exit(main(RELEASE))
