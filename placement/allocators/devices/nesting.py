"""The order in which levels of a host enclose each other, which may differ from the order in which they count."""

from collections.abc import Collection, Sequence

PlacePath = Sequence[str | None]


def nesting(paths: Collection[PlacePath], levels: int) -> tuple[int, ...] | None:
    """Return the levels from the outside in; None if some places overlap without one enclosing the other.

    Args:
        paths: the places of devices, one for each level, None for no place.
        levels: the number of levels.

    >>> nesting([("pcie0", "numa0"), ("pcie1", "numa0"), (None, "numa1")], levels=2)
    (1, 0)
    >>> nesting([("pcie0", "numa0"), ("pcie1", "numa0"), ("pcie1", "numa1")], levels=2)
    """
    order: list[int] = []
    inner = list(range(levels))
    while inner:
        outermost = next((one for one in inner if all([_is_in_one(paths, other, one) for other in inner])), None)
        if outermost is None:
            return None
        order.append(outermost)
        inner.remove(outermost)
    return tuple(order)


def _is_in_one(paths: Collection[PlacePath], inner: int, outer: int) -> bool:
    """Tell whether each place of ``inner`` lies entirely in one place of ``outer``, or entirely in none."""
    around: dict[str | None, str | None] = {}
    return all([path[inner] is None or around.setdefault(path[inner], path[outer]) == path[outer] for path in paths])
