"""The algorithms, a library of their own that knows no server; here is what they share: a budget and an order of names.

``strategy_fit`` and ``fragmentation`` score hosts and ``ranking_profile`` names a set of scores; ``devices`` and
``group`` allocate inside one host, ``fabric`` over hosts; ``fair_share`` divides a cloud; ``bundle_packing`` counts.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from os.path import commonprefix


class Budget:
    """A number of steps left to take, which bounds a search however hard the request is.

    A child, for part of a search, draws on its parent as well. Each search decides what a step is; searches that share
    a budget should have steps of about the same cost.

    >>> request = Budget(100)
    >>> tree = request.child(10)
    >>> tree.take(8), tree.take(8)
    (True, False)
    >>> tree.remaining, request.remaining, request.was_hit
    (0, 90, True)
    """

    __slots__ = ("_left", "_parent", "was_hit")

    def __init__(self, limit: int, parent: "Budget | None" = None) -> None:
        self._left = limit
        self._parent = parent
        self.was_hit = False
        """Whether more was asked for than was left, here or in a child; results may then be incomplete."""

    @property
    def remaining(self) -> int:
        """The number of steps left, here and in all parents."""
        return self._left if self._parent is None else min(self._left, self._parent.remaining)

    @property
    def is_used_up(self) -> bool:
        """Whether no steps are left."""
        return self.remaining <= 0

    def child(self, limit: int) -> "Budget":
        """Return a budget for part of the search."""
        return Budget(limit, self)

    def take(self, steps: int = 1) -> bool:
        """Take this many steps at once. If fewer are left, use those up and mark the budget and its parents as hit."""
        if self._left >= steps and (self._parent is None or self._parent.take(steps)):
            self._left -= steps
            return True
        remaining = self.remaining
        budget: Budget | None = self
        while budget is not None:
            budget._left -= remaining
            budget.was_hit = True
            budget = budget._parent
        return False


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
