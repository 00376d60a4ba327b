"""What POST /planner/v1/candidates asks for: the groups of a candidate request, and what a query string cannot say."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from placement.domain.candidate_request import CandidateRequest, RequestGroup

THE_DEVICE = "device"
"""As a level of ``Exclusive``: the provider itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannerGroup:
    """A request group of which each of ``count`` different providers serves one.

    Args:
        group: what one provider must be and have.
        count: how many providers; with ``per_subtree`` the least number, with ``everything`` without meaning.
        per_subtree: one in each place that the primary group of its affinity uses.
        everything: every healthy provider that matches; a tree where one of them has no room is no candidate.
        device: if the group is for virtual functions, what the device must be that they belong to: their parent.
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
    """A joint allocation: where the primary group is, there are the secondary ones, in each place of the level."""

    primary: str
    secondaries: tuple[str, ...]
    level: str
    required: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Within:
    """Groups that lie in one place of a level together; if not required, in as few as possible."""

    groups: tuple[str, ...]
    level: str
    required: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Exclusive:
    """Groups whose places at a level nobody else may use; THE_DEVICE as the level means their providers alone."""

    groups: tuple[str, ...]
    level: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannerRequest:
    """A whole request. It has either groups or ``paths``.

    Args:
        groups: at most one unsuffixed.
        isolate, same_subtree, root_required, root_forbidden: as in a CandidateRequest.
        affinity, within, exclusive: rules about places. A level is a name from the planner file or a trait.
        avoided_trees: trees that are left out, each by the uuid of any of its providers; unknown ones are ignored.
        paths: amounts by hierarchical name, ``Gpugrp1/R0/gpu/0/PGPU``: what the first container asks for.
        containers: the same of further containers, which run at the same time.
        init_containers: the same of containers that run before these, one after the other.
        written: the name in ``paths`` that asked for a class or a trait of a group, for groups that stood there.
        translate: whether each group of ``paths`` that leaves out upper groups gets one of these for itself.
        distinct: whether groups of ``paths`` beside each other must get different providers.
        profile: the name of a ranking profile; None for the one in force, or that the request brings along.
        limit: how many candidates at most.
        per_tree: how many of one tree at most.
        explain: whether the answer says what was left after each step.
    """

    groups: tuple[PlannerGroup, ...] = ()
    isolate: bool = False
    same_subtree: tuple[frozenset[str], ...] = ()
    root_required: frozenset[str] = frozenset()
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
        """The part that the database knows how to narrow: the conditions of each provider and of the root."""
        return CandidateRequest(
            groups=tuple(one.group for one in self.groups),
            isolate=self.isolate,
            root_required=self.root_required,
            root_forbidden=self.root_forbidden,
        )

    @property
    def requested(self) -> Mapping[str, int]:
        """How much is asked for of each class, as far as the request says; what is only counted in a tree is once."""
        amounts: Counter[str] = Counter()
        for one in self.groups:
            for name, amount in one.group.resources.items():
                amounts[name] += amount * one.count
        return amounts

    def levels(self) -> Iterator[str]:
        """Yield the levels that rules are about, as they are written."""
        yield from [rule.level for rule in self.affinity]
        yield from [rule.level for rule in self.within]
        yield from [rule.level for rule in self.exclusive if rule.level != THE_DEVICE]
