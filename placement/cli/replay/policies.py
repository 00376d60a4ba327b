"""The compared policies: how each of them prices a placement."""

from collections.abc import Mapping
from types import MappingProxyType

from placement.allocators.fragmentation import CostWeights

POLICIES: Mapping[str, CostWeights] = MappingProxyType(
    {
        "best fit": CostWeights(gradient=0, offcut=0, scarcity=0, fit=1),
        "gradient": CostWeights(gradient=1, offcut=0, scarcity=0, fit=0.00001),  # The fit only breaks ties.
        "fragmentation": CostWeights(),
    }
)

PUBLISHED_AS: Mapping[str, str] = MappingProxyType({"best fit": "BestFit", "gradient": "FGD", "fragmentation": "FGD"})
"""The published policy that each of ours is compared with."""
