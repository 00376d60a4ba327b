"""How well a device, or the devices of a host together, fit what is asked of them, from 0 to 100."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Literal

from placement.allocators.group.tree import Capacity

Preference = Literal["most", "least"]
"""Whether the fullest device is liked most (whole ones stay free) or the emptiest (load is spread)."""

Cells = Mapping[str, Capacity]
"""What a device has of each resource class."""

WORST = 1000


def device_score(cells: Cells, asked: Mapping[str, int], prefer: Preference = "most") -> Fraction:
    """Return the mean, over the classes that a device has, of how full (or empty) it is after an allocation.

    Classes that nobody asks for count, as in Koordinator; one without capacity does not.

    >>> gpu = {"CUSTOM_GPU_CORE": Capacity(100, used=50)}
    >>> int(device_score(gpu, {"CUSTOM_GPU_CORE": 30})), int(device_score(gpu, {"CUSTOM_GPU_CORE": 30}, "least"))
    (80, 20)
    """
    shares = [_fullness(cell, asked.get(name, 0)) for name, cell in cells.items() if cell.allocatable > 0]
    if not shares:
        return Fraction()
    mean = sum(shares, Fraction()) / len(shares)
    return 100 * (mean if prefer == "most" else 1 - mean)


def node_score(devices: Sequence[Cells], asked: Mapping[str, int], prefer: Preference = "most") -> Fraction:
    """Return the score of the devices of a host, taken together as if they were one."""
    names = {name for cells in devices for name in cells}
    together = {
        name: Capacity(
            sum([cells[name].allocatable for cells in devices if name in cells]),
            sum([cells[name].used for cells in devices if name in cells]),
        )
        for name in names
    }
    return device_score(together, asked, prefer)


def misfit(cells: Cells, asked: Mapping[str, int], prefer: Preference = "most") -> int:
    """Return how ill a device fits, from 0 to 1000: a group's option for the allocator.

    Only classes that are asked for count, so that what a device has besides does not blur the order.

    >>> misfit({"CUSTOM_RDMA_SHARE": Capacity(100, used=20)}, {"CUSTOM_RDMA_SHARE": 30})
    500
    """
    left = [
        WORST * (cells[name].allocatable - cells[name].used - amount) // cells[name].allocatable
        for name, amount in asked.items()
        if name in cells and cells[name].allocatable > 0
    ]
    emptiness = max(0, sum(left)) // len(left) if left else 0
    return emptiness if prefer == "most" else WORST - emptiness


def _fullness(cell: Capacity, asked: int) -> Fraction:
    return min(Fraction(cell.used + asked, cell.allocatable), Fraction(1))
