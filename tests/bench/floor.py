"""The floor on this machine, to read absolute CPU times by: machines differ by a factor of three, and so do hours.

``python -m tests.bench.floor`` prints it. Benchmarks whose bars are absolute print it beside their figures.
"""

import statistics
import time
from typing import NamedTuple

from tests.bench.floor_app import application

SIZE = 1_000
SERIES, REQUESTS = 30, 50
USUAL_MS = 0.2
"""The floor of the machines for which absolute bars are meant."""


class Floor(NamedTuple):
    """The CPU time in ms that Flask takes to return a stored answer in this process: quartiles and median."""

    first: float
    median: float
    last: float

    @property
    def slowness(self) -> float:
        """How many times slower this machine is than those for which absolute bars are meant; 1 if it is faster."""
        return max(1.0, self.median / USUAL_MS)

    def __str__(self) -> str:
        """Return it in words."""
        spread = f"{self.first:.3f} to {self.last:.3f}"
        return f"floor: a stored answer of {SIZE} bytes takes {self.median:.3f} ms of CPU ({spread})"


def floor() -> Floor:
    """Measure the floor."""
    client = application.test_client()
    spent = []
    for _ in range(SERIES):
        begun = time.process_time()
        for _ in range(REQUESTS):
            client.get(f"/{SIZE}")
        spent.append((time.process_time() - begun) * 1000 / REQUESTS)
    return Floor(*statistics.quantiles(spent, n=4))


if __name__ == "__main__":
    print(floor())
