"""The natural order of names: sorted as people would, with numbers by value."""

import re
from collections.abc import Sequence
from functools import lru_cache
from os.path import commonprefix

NaturalKey = tuple[tuple[str | int, ...], str]


@lru_cache(maxsize=4096)  # Names recur: a pool's with each host it serves, a host's each time the host is looked at.
def natural_key(name: str) -> NaturalKey:
    """Return a sort key that orders names as people would, numbers by value.

    >>> sorted(["dev10", "dev2", "dev1"], key=natural_key)
    ['dev1', 'dev2', 'dev10']
    """
    # Splitting at digits puts text at even and digits at odd positions, so values of the same type are compared.
    pieces = re.split(r"([0-9]+)", name)
    return tuple(int(piece) if place % 2 else piece for place, piece in enumerate(pieces)), name


def natural_order(names: Sequence[str]) -> tuple[int, ...]:
    """Return the indexes of names sorted by ``natural_key``; the sort is stable.

    >>> natural_order(["host1-dev10", "host1-dev2", "host1"])
    (2, 1, 0)
    """
    # Providers of hosts of one model have names that differ only in the host's, which all of them begin with.
    prefix = commonprefix(names)  # noqa: RUF071 - names are not paths
    start = len(prefix)
    if prefix[-1:].isdigit() and any([name[start : start + 1].isdigit() for name in names]):
        start = 0  # A number straddles the end of the prefix.
    return _order(tuple([name[start:] for name in names]))


@lru_cache(maxsize=4096)  # Which providers of a host of one model can serve differs from host to host.
def _order(names: tuple[str, ...]) -> tuple[int, ...]:
    keys = [natural_key(name) for name in names]
    return tuple(sorted(range(len(keys)), key=keys.__getitem__))
