"""Headroom: how many copies of a request fit one after another, without moving anything that is already there.

>>> Spread([(0, 1), (0, 1)], each=(1, 1)).copies((3, 5))
3
>>> BundlePacking([{0: 2, 1: 2}, {0: 3}, {1: 3}], [{0, 1}]).copies([5, 6], budget=Budget(100))
Copies(least=3, most=3)
"""

from placement.allocators.budget import Budget
from placement.allocators.headroom.bundles import (
    ENDLESS,
    Bundle,
    BundlePacking,
    Copies,
    Spread,
    drawn,
    exactly,
    undominated,
)
from placement.allocators.headroom.joint import CopyCounts, JointPacking, largest, parts_of
from placement.allocators.headroom.mix import MixedRoom, copies_of_mix, most_in_all

__all__ = [
    "ENDLESS",
    "Budget",
    "Bundle",
    "BundlePacking",
    "Copies",
    "CopyCounts",
    "JointPacking",
    "MixedRoom",
    "Spread",
    "copies_of_mix",
    "drawn",
    "exactly",
    "largest",
    "most_in_all",
    "parts_of",
    "undominated",
]
