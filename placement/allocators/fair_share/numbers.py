"""The numbers of fair shares: whole numbers in place of fractions, so that sums do not depend on their order.

A share is a multiple of 2**-192. Exact fractions would do, but the denominators of a sum over a thousand queues have a
hundred thousand digits; floats would make ties a matter of luck. Where shares are compared they are rounded once, to
multiples of 2**-96. Of leaves the comparison is thereby exact (two fractions of totals below 2**48 differ by more than
that, or are equal); inside the tree, shares closer than 2**-96 count as equal.
"""

PRECISION = 192
ONE = 1 << PRECISION
"""A share of everything there is."""

COMPARED = 96
_DROPPED = PRECISION - COMPARED
_HALF = 1 << (_DROPPED - 1)


def ratio(used: int, total: int) -> int:
    """Return how large a part of a total is used; 0/0 is 0, and any use of nothing is all of it (HD-14).

    >>> [ratio(used, total) / ONE for used, total in [(0, 0), (5, 0), (5, 10)]]
    [0.0, 1.0, 0.5]
    """
    if total > 0:
        return used * ONE // total
    return ONE if used else 0


def compared(share: int) -> int:
    """Return a share as it is compared: equal fractions are equal, however they were worked out."""
    return (share + _HALF) >> _DROPPED


def as_float(share: int) -> float:
    """Return the float that is nearest to a share.

    >>> as_float(ratio(1, 3)) == 1 / 3
    True
    """
    return compared(share) / (1 << COMPARED)
