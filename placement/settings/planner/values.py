"""What the planner file says, as frozen values. Each field is the section of the same name."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from placement.allocators.ranking_profile import RankingProfile
from placement.settings.planner.fair_share import FairShareSettings

DEFAULT_LEVELS: Mapping[str, str] = MappingProxyType({"numa": "HW_NUMA_ROOT", "pcie": "CUSTOM_HW_PCIE_SWITCH"})
DEFAULT_PROFILES: Mapping[str, RankingProfile] = MappingProxyType({"default": RankingProfile()})


@dataclass(frozen=True, slots=True)
class PlannerSettings:
    """The planner file; made without arguments, what holds where there is none.

    Args:
        levels: name of a level inside a provider tree -> trait of its providers, the outermost level first.
        profiles: name -> profile.
        default_profile: the name of the profile that orders ``GET /allocation_candidates``.
        fair_share: how resources are shared among projects.
    """

    levels: Mapping[str, str] = field(default_factory=lambda: DEFAULT_LEVELS)
    profiles: Mapping[str, RankingProfile] = field(default_factory=lambda: DEFAULT_PROFILES)
    default_profile: str = "default"
    fair_share: FairShareSettings = field(default_factory=FairShareSettings)

    @property
    def profile_in_force(self) -> RankingProfile:
        """The default profile."""
        return self.profiles[self.default_profile]
