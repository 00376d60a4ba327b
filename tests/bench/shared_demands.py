"""CPU time and exactness of the group allocator for eight unequal demands that may share 64 locations.

python -m tests.bench.shared_demands [--cases 20] [--demands 8]
"""

import argparse
import random
import time

from placement.allocators.group.place import place
from placement.allocators.group.tree import Capacity, Location, Requirement

SIZES = {"memory": 80, "cores": 100, "vf": 16}
USES = ("equal", "unequal", "empty")
"""Locations of one size, partly used; of three sizes, partly used; of one size, unused."""


def main() -> None:
    """Print a line for each number of resources, form of tree and usage."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--cases", type=int, default=20)
    parser.add_argument("--demands", type=int, default=8)
    options = parser.parse_args()
    print("resources, locations: median, slowest CPU ms; how many were not finished")
    for resources in (1, 2, 3):
        for is_flat in (False, True):
            for use in USES:
                found = [_measured(seed, resources, options.demands, (is_flat, use)) for seed in range(options.cases)]
                times = sorted([elapsed for elapsed, _is_complete in found])
                open_ends = sum([not is_complete for _elapsed, is_complete in found])
                form = "beside each other" if is_flat else "in a tree"
                print(f"{resources}, {use} {form}: {times[len(times) // 2]:.0f}, {times[-1]:.0f}; {open_ends}")


def _measured(seed: int, resources: int, demands: int, kind: tuple[bool, str]) -> tuple[float, bool]:
    """Return the milliseconds that one case takes and whether its answer is proven to be the best."""
    rng = random.Random(seed)
    bases = list(SIZES)[:resources]
    root = _root(rng, bases, *kind)
    parts = [
        Requirement(f"{number}", "gpu", {base: rng.randint(1, SIZES[base] // 2) for base in bases})
        for number in range(demands)
    ]
    start = time.process_time()
    placement = place(root, [Requirement(parts=tuple(parts))])
    return (time.process_time() - start) * 1000, placement.complete


def _root(rng: random.Random, bases: list[str], is_flat: bool, use: str) -> Location:
    """Return 64 devices, four on each switch and four switches in each NUMA node, or all directly below the root."""
    devices = []
    for number in range(64):
        capacities = {}
        for base in bases:
            size = SIZES[base]
            total = rng.choice([size, size // 2, size * 3 // 2]) if use == "unequal" else size
            capacities[base] = Capacity(total, 0 if use == "empty" else rng.randint(0, total // 2))
        devices.append(Location(f"d{number}", "gpu", capacities))
    if is_flat:
        return Location(children=tuple(devices))
    switches = [Location(f"s{n}", "switch", {}, tuple(devices[n : n + 4])) for n in range(0, 64, 4)]
    return Location(
        children=tuple([Location(f"n{n}", "numa", {}, tuple(switches[n : n + 4])) for n in range(0, 16, 4)])
    )


if __name__ == "__main__":
    main()
