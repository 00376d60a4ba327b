"""The natural order of names: as people sort them, numbers by their value."""

import re

NaturalKey = tuple[tuple[str | int, ...], str]


def natural_key(name: str) -> NaturalKey:
    """Return what sorts names as people do, numbers by their value.

    >>> sorted(["dev10", "dev2", "dev1"], key=natural_key)
    ['dev1', 'dev2', 'dev10']
    """
    # Splitting by the digits puts text at even places and digits at odd ones, so that like is compared with like.
    pieces = re.split(r"([0-9]+)", name)
    return tuple(int(piece) if place % 2 else piece for place, piece in enumerate(pieces)), name
