"""The planner file's content as frozen values. Each field is the section of the same name."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from placement.allocators.fair_share.queues import QueueTree, tree_of
from placement.allocators.ranking_profile import RankingProfile
from placement.domain.device_types import DeviceSettings

DEFAULT_LEVELS: Mapping[str, str] = MappingProxyType({"numa": "HW_NUMA_ROOT", "pcie": "CUSTOM_HW_PCIE_SWITCH"})
DEFAULT_PROFILES: Mapping[str, RankingProfile] = MappingProxyType({"default": RankingProfile()})
DEFAULT_LOCKS: Mapping[str, str] = MappingProxyType({"pcie": "CUSTOM_PCIE_LOCK", "device": "CUSTOM_DEVICE_LOCK"})

Leaves = Literal["project", "consumer_type"]


@dataclass(frozen=True, slots=True)
class FairShareSettings:
    """How resources are shared; by default, all projects are equal.

    Args:
        classes: the resource classes that count.
        leaves: whether queues consist of projects or of consumer types.
        partition: the uuid of the aggregate whose providers count; None for all.
        keep_s: for how many seconds usage and totals are cached.
    """

    classes: tuple[str, ...] = ("VCPU", "MEMORY_MB")
    leaves: Leaves = "project"
    queues: QueueTree = field(default_factory=lambda: tree_of([]))
    partition: str | None = None
    keep_s: float = 5


@dataclass(frozen=True, slots=True)
class OwnerNames:
    """What Keystone calls projects and users: id -> name. Whoever is not listed goes by the id."""

    projects: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    users: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    def project_id(self, text: str) -> str:
        """Return the id of the only project with a name; any other text is an id itself."""
        return _only_id(self.projects, text)

    def user_id(self, text: str) -> str:
        """Return the same of a user."""
        return _only_id(self.users, text)

    def projects_with(self, text: str, *, limit: int) -> list[str]:
        """Return the ids of at most so many projects whose names contain a text, in any case."""
        sought = text.casefold()
        return [id_ for id_, name in self.projects.items() if sought in name.casefold()][:limit]


def _only_id(names: Mapping[str, str], text: str) -> str:
    ids = [] if text in names else [id_ for id_, name in names.items() if name == text]
    return ids[0] if len(ids) == 1 else text


@dataclass(frozen=True, slots=True)
class PlannerSettings:
    """The planner file; by default, what applies without one.

    Args:
        levels: name of a level inside a provider tree -> trait of its providers, outermost level first.
        default_profile: the name of the profile that orders ``GET /allocation_candidates``.
        exclusive: level -> the class of the inventory that locks its providers.
        devices: the device types that requests may use.
        flavor_root_required: the traits that nova's request filters require of hosts, whatever the flavor.
        flavors: named requests whose headroom is counted, as query strings of GET /allocation_candidates.
        private_flavors: the flavors that not every project may use.
        aggregates: kind (zone, rack, ...) -> name -> the uuids of its aggregates, outermost kind first.
        names: what projects and users are called.
    """

    levels: Mapping[str, str] = field(default_factory=lambda: DEFAULT_LEVELS)
    profiles: Mapping[str, RankingProfile] = field(default_factory=lambda: DEFAULT_PROFILES)
    default_profile: str = "default"
    fair_share: FairShareSettings = field(default_factory=FairShareSettings)
    exclusive: Mapping[str, str] = field(default_factory=lambda: DEFAULT_LOCKS)
    devices: DeviceSettings = field(default_factory=DeviceSettings)
    flavor_root_required: tuple[str, ...] = ()
    flavors: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    private_flavors: frozenset[str] = frozenset()
    aggregates: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=lambda: MappingProxyType({}))
    names: OwnerNames = field(default_factory=OwnerNames)

    @property
    def profile_in_force(self) -> RankingProfile:
        """The default profile."""
        return self.profiles[self.default_profile]
