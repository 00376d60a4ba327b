"""How an operator orders candidates: a named set of a strategy, the weight of compactness, and fragmentation.

*Compactness* is in how few NUMA nodes, and then in how few PCIe switches, the providers of a placement lie. It is the
group allocator's objective, but by counting alone, so that tens of thousands of candidates can be sorted by it.

>>> one_node, two_switches, two_nodes = (1, 1), (1, 2), (2, 2)
>>> [round(compactness(counts), 1) for counts in (one_node, two_switches, two_nodes)]
[100.0, 66.7, 40.0]
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from placement.allocators.entries import Number, check_number, exact
from placement.allocators.fragmentation.hosts import FragmentationSettings
from placement.allocators.strategy_fit.profile import MAX_NODE_SCORE, Fit, Preference, Profile, Sra
from placement.allocators.strategy_fit.scorer import Scorers

MAX_COMPACTNESS = 100.0
"""The compactness of what lies in a single place of every level."""

Counts = tuple[int, ...]
"""By level, outermost first, the places at or above the providers taken: lexicographically smaller is more compact."""


def compactness(counts: Sequence[int]) -> float:
    """Score compactness from 0 (exclusive) to 100, independently of any other placement.

    The score is 100 / (count of the outermost level + how far the inner levels fall short of their best). It is higher
    if and only if the counts are lexicographically smaller: no saving in inner places makes up for an outer one.

    >>> compactness((2,)), compactness((1, 1, 1)), compactness(())
    (50.0, 100.0, 100.0)
    """
    share = 1.0
    for count in reversed(counts):
        share = 1.0 / (count + (1.0 - share))
    return MAX_COMPACTNESS * share


DEVICES = ("PGPU", "VGPU", "FPGA")
"""The standard classes that are devices."""

PACKED = (*DEVICES, "CUSTOM_GPU_*", "CUSTOM_PCI_10DE_*", "CUSTOM_PCI_1002_*")
"""What is packed without configuration; the last two are GPUs that nova passes through, NVIDIA's and AMD's."""


def _spread_beside_packed_devices() -> Profile:
    fit = Fit({**Fit().resources, **dict.fromkeys(PACKED, Preference("MostAllocated", weight=4))})
    # Each class of devices counts as much as the whole fit, so that others use hosts with devices last. A family would
    # cost each request a statement, which reads the names of all classes.
    return Profile(fit=fit, sra=Sra(dict.fromkeys(DEVICES, 1), weight=fit.weight * len(DEVICES)))


@dataclass(frozen=True, slots=True)
class RankingProfile:
    """A named way to order candidates. The defaults apply where nothing is configured.

    Args:
        name: identifies it in requests and answers.
        strategy: the policies for the provider tree as a whole; by default VCPU and MEMORY_MB are spread, devices are
            packed, and other requests keep off trees that have devices.
        compactness: the weight of touching few places of each level (NUMA nodes, switches); 0 disables it.
        fragmentation: how placements are judged by what they do to devices; None disables it.

    Raises:
        InvalidEntry: the weight is negative or not a number.
    """

    name: str = "default"
    strategy: Profile = field(default_factory=_spread_beside_packed_devices)
    compactness: Number = 10
    fragmentation: FragmentationSettings | None = None
    maximum: Fraction = field(init=False, repr=False, compare=False)
    """The upper bound of the weighted sum of all parts: 100 times the sum of the weights."""
    scorers: Scorers = field(init=False, repr=False, compare=False)
    """The strategy compiled for requests."""

    def __post_init__(self) -> None:
        check_number(self.compactness, "compactness")
        fragmentation = exact(self.fragmentation.weight) if self.fragmentation else 0
        maximum = self.strategy.maximum + MAX_NODE_SCORE * (exact(self.compactness) + fragmentation)
        object.__setattr__(self, "maximum", maximum)
        object.__setattr__(self, "scorers", Scorers(self.strategy))

    @property
    def filters(self) -> bool:
        """Whether trees that break a proportion are dropped rather than sorted last."""
        proportional = self.strategy.proportional
        return proportional is not None and proportional.mode == "filter"
