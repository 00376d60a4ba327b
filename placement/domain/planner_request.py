"""A parsed POST /planner/v1/candidates request: a candidate request's groups, and what a query cannot express.

Also the rules of a gang: where its members may lie among the hosts, and the racks, blocks or zones that these are in.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from placement.domain.device_types import enumerated_traits, is_enumerated
from placement.domain.search_plan import CandidateRequest, RequestGroup

THE_DEVICE = "device"
"""As a level of ``Exclusive``: the provider itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannerGroup:
    """A request group that ``count`` different providers serve, each in full.

    ``per_subtree``: at least ``count``, one in each place of the primary group of its affinity. ``everything``: every
    healthy provider that matches. ``device``: for virtual functions, the requirements on their parent, the device.
    """

    group: RequestGroup
    count: int = 1
    per_subtree: bool = False
    everything: bool = False
    device: RequestGroup | None = None

    @property
    def suffix(self) -> str:
        """The name of the group."""
        return self.group.suffix


@dataclass(frozen=True, slots=True, kw_only=True)
class Affinity:
    """A joint allocation: the secondary groups go wherever the primary one is, in each of its places of the level."""

    primary: str
    secondaries: tuple[str, ...]
    level: str
    required: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Within:
    """Groups that lie in one place of a level together; if not required, in as few places as possible."""

    groups: tuple[str, ...]
    level: str
    required: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Exclusive:
    """Groups whose places at a level nobody else may use; THE_DEVICE as the level stands for their providers alone."""

    groups: tuple[str, ...]
    level: str


class ContainerPaths(NamedTuple):
    """What one container asks for by hierarchical names, and the prefix of these in the answer."""

    prefix: str
    paths: Mapping[str, int]
    is_initial: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannerRequest:
    """A whole request. It has either groups, at most one of them unsuffixed, or ``paths``.

    Args:
        affinity, within, exclusive: rules about places. A level is a name from the planner file or a trait.
        avoided_trees: trees to leave out, each by the uuid of any of its providers; unknown ones are ignored.
        paths: the first container's request as hierarchical name -> amount, ``Gpugrp1/R0/gpu/0/PGPU``.
        containers, init_containers: the same for those that run at the same time, and one by one before these.
        written: the name in ``paths`` that asked for a class or trait of a group, for groups that came from there.
        translate: whether each group of ``paths`` that omits outer groups gets ones of its own.
        distinct: whether sibling groups of ``paths`` must get different providers.
        profile: the name of a ranking profile; None for the one in force, or the request's own.
        limit, per_tree: the most candidates in all, and of each tree.
    """

    groups: tuple[PlannerGroup, ...] = ()
    isolate: bool = False
    same_subtree: tuple[frozenset[str], ...] = ()
    root_required: frozenset[frozenset[str]] = frozenset()
    root_forbidden: frozenset[str] = frozenset()
    affinity: tuple[Affinity, ...] = ()
    within: tuple[Within, ...] = ()
    exclusive: tuple[Exclusive, ...] = ()
    avoided_trees: frozenset[str] = frozenset()
    paths: Mapping[str, int] = field(default_factory=dict)
    containers: tuple[Mapping[str, int], ...] = ()
    init_containers: tuple[Mapping[str, int], ...] = ()
    written: Mapping[tuple[str, str], str] = field(default_factory=dict)
    translate: bool = False
    distinct: bool = False
    profile: str | None = None
    limit: int = 10
    per_tree: int = 1
    explain: bool = False

    @property
    def plain(self) -> CandidateRequest:
        """The part that the database can narrow by: the conditions on each provider and on the root."""
        return CandidateRequest(
            groups=tuple(counted_group.group for counted_group in self.groups),
            isolate=self.isolate,
            root_required=self.root_required,
            root_forbidden=self.root_forbidden,
        )

    @property
    def requested(self) -> Mapping[str, int]:
        """The total requested of each class as far as it is known; what depends on the tree counts once."""
        amounts: Counter[str] = Counter()
        for counted_group in self.groups:
            for name, amount in counted_group.group.resources.items():
                amounts[name] += amount * counted_group.count
        return amounts

    def all_paths(self) -> Iterator[ContainerPaths]:
        """Yield what each container asks for by hierarchical names, in the order of the request."""
        yield ContainerPaths("", self.paths)
        for number, paths in enumerate(self.containers, start=1):
            yield ContainerPaths(f"containers/{number}", paths)
        for number, paths in enumerate(self.init_containers):
            yield ContainerPaths(f"init_containers/{number}", paths, is_initial=True)

    def enumerated(self) -> Iterator[tuple[str, frozenset[str]]]:
        """Yield the names of enumerated resources, each with the traits of which one is enough."""
        for name, bits in [pair for container in self.all_paths() for pair in container.paths.items()]:
            base = name.rpartition("/")[2]
            if is_enumerated(base):
                yield name, enumerated_traits(base, bits)

    def levels(self) -> Iterator[str]:
        """Yield the levels that rules refer to, as written."""
        yield from [rule.level for rule in self.affinity]
        yield from [rule.level for rule in self.within]
        yield from [rule.level for rule in self.exclusive if rule.level != THE_DEVICE]


THE_HOST = "host"
"""The level of single hosts, whose places have no names."""

PlaceNames = Mapping[str, Collection[str]]
"""Place name -> the uuids of its aggregates."""


@dataclass(frozen=True, slots=True)
class FabricLevel:
    """A level of the fabric, such as racks."""

    name: str
    places: PlaceNames = field(default_factory=dict)

    @property
    def is_host(self) -> bool:
        """Whether each host is a place of this level."""
        return self.name == THE_HOST


@dataclass(frozen=True, slots=True)
class Together:
    """A rule to keep members in as few places of a level as possible; if ``required``, in one.

    With a ``group_size``, members come in groups: each in one place, no two in the same.
    """

    level: FabricLevel
    required: bool = True
    group_size: int | None = None


@dataclass(frozen=True, slots=True)
class GangRules:
    """A gang's rules for the fabric. No two members may be in one place of ``separate_level``."""

    together: Together | None = None
    separate_level: FabricLevel | None = None

    @property
    def are_none(self) -> bool:
        """Whether members may be anywhere."""
        return self.together is None and self.separate_level is None


ANYWHERE = GangRules()


def names_of_hosts(names: PlaceNames, members: Mapping[str, Collection[int]]) -> dict[int, str]:
    """Return the name of each host's place, the first one if there are several.

    ``members`` maps aggregates to the roots of the trees that have a provider in them.

    >>> names_of_hosts({"b1": ["x"], "b2": ["y", "z"]}, {"x": [1], "y": [1, 2], "z": [3]})
    {1: 'b1', 2: 'b2', 3: 'b2'}
    """
    names_by_root: dict[int, str] = {}
    for name, uuids in names.items():
        for uuid in uuids:
            for root in members.get(uuid, ()):
                names_by_root.setdefault(root, name)
    return names_by_root
