"""How well a device, or the devices of a host together, fit what is asked of them, from 0 to 100."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Literal, NamedTuple

Packing = Literal["most", "least"]
"""Whether the fullest device is liked most (whole ones stay free) or the emptiest (load is spread)."""

WORST = 1000


class DeviceStock(NamedTuple):
    """What a device has of one resource class, and how much of that is in use."""

    allocatable: int
    used: int = 0


DeviceStocks = Mapping[str, DeviceStock]
"""What a device has, by resource class."""


def device_score(stocks: DeviceStocks, asked: Mapping[str, int], prefer: Packing = "most") -> Fraction:
    """Return the mean, over the classes that a device has, of how full (or empty) it is after an allocation.

    Classes that nobody asks for count, as in Koordinator; one without capacity does not.

    >>> gpu = {"CUSTOM_GPU_CORE": DeviceStock(100, used=50)}
    >>> int(device_score(gpu, {"CUSTOM_GPU_CORE": 30})), int(device_score(gpu, {"CUSTOM_GPU_CORE": 30}, "least"))
    (80, 20)
    """
    shares = [_fullness(stock, asked.get(name, 0)) for name, stock in stocks.items() if stock.allocatable > 0]
    if not shares:
        return Fraction()
    mean = sum(shares, Fraction()) / len(shares)
    return 100 * (mean if prefer == "most" else 1 - mean)


def node_score(devices: Sequence[DeviceStocks], asked: Mapping[str, int], prefer: Packing = "most") -> Fraction:
    """Return the score of the devices of a host, taken together as if they were one."""
    names = {name for stocks in devices for name in stocks}
    together = {
        name: DeviceStock(
            sum([stocks[name].allocatable for stocks in devices if name in stocks]),
            sum([stocks[name].used for stocks in devices if name in stocks]),
        )
        for name in names
    }
    return device_score(together, asked, prefer)


def misfit(stocks: DeviceStocks, asked: Mapping[str, int], prefer: Packing = "most") -> int:
    """Return how ill a device fits, from 0 to 1000: a group's option for the allocator.

    Only classes that are asked for count, so that what a device has besides does not blur the order.

    >>> misfit({"CUSTOM_RDMA_SHARE": DeviceStock(100, used=20)}, {"CUSTOM_RDMA_SHARE": 30})
    500
    """
    left = [
        WORST * (stocks[name].allocatable - stocks[name].used - amount) // stocks[name].allocatable
        for name, amount in asked.items()
        if name in stocks and stocks[name].allocatable > 0
    ]
    emptiness = max(0, sum(left)) // len(left) if left else 0
    return emptiness if prefer == "most" else WORST - emptiness


def _fullness(stock: DeviceStock, asked: int) -> Fraction:
    return min(Fraction(stock.used + asked, stock.allocatable), Fraction(1))
