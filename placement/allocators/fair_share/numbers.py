"""The arithmetic of fair shares: fixed-point integers instead of fractions, so that sums do not depend on their order.

A share is a multiple of 2**-192. Exact fractions are impractical: the denominator of a sum over a thousand queues has
a hundred thousand digits. Floats would make ties a matter of luck. Shares are rounded to multiples of 2**-96 before
they are compared. For leaves that makes comparison exact (two fractions of totals below 2**48 are either equal or
further apart than that); inside the tree, shares closer than 2**-96 compare equal.
"""

PRECISION = 192
ONE = 1 << PRECISION
"""The share of whoever holds everything."""

COMPARED = 96
_DROPPED = PRECISION - COMPARED
_HALF = 1 << (_DROPPED - 1)


def ratio(used: int, total: int) -> int:
    """Return used / total as a share; 0/0 is 0, and any use of an empty total is a full share (HD-14).

    >>> [ratio(used, total) / ONE for used, total in [(0, 0), (5, 0), (5, 10)]]
    [0.0, 1.0, 0.5]
    """
    if total > 0:
        return used * ONE // total
    return ONE if used else 0


def compared(share: int) -> int:
    """Round a share for comparison, so that equal fractions compare equal however they were computed."""
    return (share + _HALF) >> _DROPPED


def as_float(share: int) -> float:
    """Return the float nearest to a share.

    >>> as_float(ratio(1, 3)) == 1 / 3
    True
    """
    return compared(share) / (1 << COMPARED)
