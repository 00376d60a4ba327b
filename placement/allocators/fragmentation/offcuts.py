"""The worth of a device's remainder: prices of shares, and the most valuable set of shares that fits.

Devices are cut into shares as steel bars are cut to lengths. Given a price for each share, a remainder is worth the
most valuable set of shares that fits into it, and taking a share from a remainder may destroy some of that worth. The
prices at which optimal cuts lose nothing are the dual prices of the cutting-stock problem (Gilmore and Gomory 1961).
They are approximated by multiplicative weights (Plotkin, Shmoys and Tardos 1995): cut the most valuable set over and
over, and each time lower the prices of what was cut, the more so the less it is in demand.
"""

from collections.abc import Mapping, Sequence
from math import exp, gcd

ROUNDS = 400
"""The number of cuts. Four times as many place no more work on production traces."""

RATE = 0.1
"""The largest fall of a price in one round, as an exponent."""


class Offcuts:
    """The worth of remainders, given the demand for shares.

    Args:
        demand: units of a share -> how often it is asked for; shares larger than a device are ignored.
        size: the units of a whole device, which is worth 1.

    >>> offcuts = Offcuts({600: 1, 400: 1}, size=1000)
    >>> [round(offcuts.worth(left), 1) for left in (300, 400, 600, 1000)]
    [0.0, 0.4, 0.6, 1.0]
    >>> round(offcuts.lost(1000, 400), 1), round(offcuts.lost(1000, 500), 1)
    (0.0, 0.2)
    """

    def __init__(self, demand: Mapping[int, float], *, size: int) -> None:
        wanted = {share: weight for share, weight in demand.items() if 0 < share <= size and weight > 0}
        self._unit = gcd(size, *wanted)
        shares = [share // self._unit for share in wanted]
        prices = _prices(shares, list(wanted.values()), size // self._unit)
        worth, _last = _dearest(shares, prices, size // self._unit)
        whole = worth[-1] or 1.0
        self._worth = [value / whole for value in worth]

    def worth(self, left: int) -> float:
        """Return the worth of a remainder, in whole devices."""
        return self._worth[min(left // self._unit, len(self._worth) - 1)]

    def lost(self, left: int, share: int) -> float:
        """Return the worth destroyed, besides the share's own, when it is taken from a remainder.

        A share's own worth is that of a remainder of its size.
        """
        return self.worth(left) - self.worth(left - share) - self.worth(share)


def _prices(shares: Sequence[int], weights: Sequence[float], size: int) -> list[float]:
    """Return the price of each share, up to a common factor. O(rounds x size x shares)."""
    total = sum(weights)
    prices = [share / size for share in shares]
    sums = [0.0] * len(shares)
    for _round in range(ROUNDS if shares else 0):
        worth, last = _dearest(shares, prices, size)
        sums = [so_far + price / worth[size] for so_far, price in zip(sums, prices, strict=True)]
        cut = _cut(shares, last)
        over = [number * total / weight for number, weight in zip(cut, weights, strict=True)]
        most = max(over)
        prices = [price * exp(-RATE * much / most) for price, much in zip(prices, over, strict=True)]
    return sums


def _dearest(shares: Sequence[int], prices: Sequence[float], size: int) -> tuple[list[float], list[int]]:
    """Solve the knapsack for each size up to ``size``: the best worth, and the last share in it or -1."""
    worth, last = [0.0], [-1]
    for room in range(1, size + 1):
        best, ends_with = worth[room - 1], -1
        for number, share in enumerate(shares):
            if share <= room and worth[room - share] + prices[number] > best:
                best, ends_with = worth[room - share] + prices[number], number
        worth.append(best)
        last.append(ends_with)
    return worth, last


def _cut(shares: Sequence[int], last: Sequence[int]) -> list[int]:
    """Return how many of each share the best knapsack of the largest size contains."""
    numbers = [0] * len(shares)
    room = len(last) - 1
    while room > 0:
        if last[room] < 0:
            room -= 1
        else:
            numbers[last[room]] += 1
            room -= shares[last[room]]
    return numbers
