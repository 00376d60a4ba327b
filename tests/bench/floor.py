"""The floor on this machine, to read absolute CPU times by: machines differ by a factor of three, and so do hours.

``python -m tests.bench.floor`` prints it. Benchmarks whose bars are absolute print it beside their figures.
"""

import statistics
import time

from tests.bench.floor_app import application

SIZE = 1_000
SERIES, REQUESTS = 30, 50


def floor() -> str:
    """Return in words what Flask takes to return a stored answer in this process."""
    client = application.test_client()
    spent = []
    for _ in range(SERIES):
        begun = time.process_time()
        for _ in range(REQUESTS):
            client.get(f"/{SIZE}")
        spent.append((time.process_time() - begun) * 1000 / REQUESTS)
    first, median, last = statistics.quantiles(spent, n=4)
    return f"floor: a stored answer of {SIZE} bytes takes {median:.3f} ms of CPU ({first:.3f} to {last:.3f})"


if __name__ == "__main__":
    print(floor())
