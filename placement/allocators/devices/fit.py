"""How well a device, or all devices of a host together, fit a request."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Literal, NamedTuple

Packing = Literal["most", "least"]
"""Prefer the fullest device (keeps whole ones free) or the emptiest (spreads load)."""

WORST = 1000


class DeviceStock(NamedTuple):
    """A device's capacity of one resource class, and its usage."""

    allocatable: int
    used: int = 0


DeviceStocks = Mapping[str, DeviceStock]
"""Resource class -> what a device has of it."""


def device_score(stocks: DeviceStocks, asked: Mapping[str, int], prefer: Packing = "most") -> Fraction:
    """Score a device from 0 to 100: the mean fullness (or emptiness) of its classes after an allocation.

    Classes that nobody asks for count, as in Koordinator; classes without capacity do not.

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
    """Score a host's devices as if they were one."""
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
    """Return how badly a device fits, from 0 to 1000, as the allocator's options need it.

    Only requested classes count, so that whatever else a device has does not blur the order.

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
