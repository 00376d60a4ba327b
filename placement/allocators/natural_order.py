"""The natural order of names: as people sort them, numbers by their value."""

import re
from collections.abc import Sequence
from functools import lru_cache
from os.path import commonprefix

NaturalKey = tuple[tuple[str | int, ...], str]


@lru_cache(maxsize=4096)  # Names come again: those of pools with each host, those of a host with each look at it.
def natural_key(name: str) -> NaturalKey:
    """Return what sorts names as people do, numbers by their value.

    >>> sorted(["dev10", "dev2", "dev1"], key=natural_key)
    ['dev1', 'dev2', 'dev10']
    """
    # Splitting by the digits puts text at even places and digits at odd ones, so that like is compared with like.
    pieces = re.split(r"([0-9]+)", name)
    return tuple(int(piece) if place % 2 else piece for place, piece in enumerate(pieces)), name


def natural_order(names: Sequence[str]) -> tuple[int, ...]:
    """Return the places of names in the order of ``natural_key``; equals stay as they are.

    >>> natural_order(["host1-dev10", "host1-dev2", "host1"])
    (2, 1, 0)
    """
    # The providers of hosts of one model have names that differ in the host's alone, which begins them all.
    start = len(commonprefix(names))  # noqa: RUF071 - names are no paths
    rests = tuple([name[start:] for name in names])
    if start and any([rest[:1].isdigit() for rest in rests]):
        rests = tuple(names)  # A number goes on where the beginning ends.
    return _order(rests)


@lru_cache(maxsize=256)
def _order(names: tuple[str, ...]) -> tuple[int, ...]:
    keys = [natural_key(name) for name in names]
    return tuple(sorted(range(len(keys)), key=keys.__getitem__))
