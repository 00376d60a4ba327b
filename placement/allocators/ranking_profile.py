"""An operator's configuration for ordering candidates: a strategy, the weight of compactness, and a name."""

from dataclasses import dataclass, field
from fractions import Fraction

from placement.allocators.entries import Number, check_number, exact
from placement.allocators.fragmentation.hosts import FragmentationSettings
from placement.allocators.strategy_fit.profile import MAX_NODE_SCORE, Fit, Preference, Profile, Sra
from placement.allocators.strategy_fit.scorer import Scorers

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
