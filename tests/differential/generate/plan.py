"""The requests of a whole round."""

from collections.abc import Iterator
from random import Random

from tests.differential.generate.candidates import candidates
from tests.differential.generate.cloud import cloud
from tests.differential.generate.malformed import malformed
from tests.differential.generate.reads import read, whole_state
from tests.differential.generate.world import World
from tests.differential.generate.writes import write
from tests.differential.requests import Request

QUERIES_FIRST = 12
ROUNDS_OF_WRITES = 5


def plan(seed: int, number: int) -> list[Request]:
    """Return the requests of one round of a run."""
    return list(_plan(World(Random(f"{seed}/{number}"))))


def _plan(world: World) -> Iterator[Request]:
    """Yield a cloud and queries, then writes and queries in turn, and finally reads of everything."""
    yield from cloud(world)
    for _ in range(QUERIES_FIRST):
        yield candidates(world)
    for _ in range(ROUNDS_OF_WRITES):
        for _ in range(world.random.randint(1, 6)):
            yield write(world)
        for _ in range(world.random.randint(1, 4)):
            yield candidates(world)
        for _ in range(world.random.randint(0, 3)):
            yield read(world)
        for _ in range(world.random.randint(0, 3)):
            yield malformed(world)
    yield from whole_state(world)
