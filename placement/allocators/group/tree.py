"""The Group Allocator's inputs: a tree of locations that offer resources, trees of requirements, and names for both.

Trees are plain values, built from a provider tree or from hierarchical names such as ``Gpugrp0/A/gpu/dev0/cards``. A
name with fewer than two separators is a base resource and compared verbatim. Any other name reads group/index/rest,
where the rest is a name inside that group. Only the group's name is compared; its index is a label (the paper's
partition, equations 4 to 13).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from placement.allocators import natural_key
from placement.allocators.group.scorers import ANY_AMOUNT, Phase, Units

Path = tuple[tuple[str, str], ...]
"""A location's address: the (level, name) pairs from just below the root down to it; () for the root."""


ANYWHERE = "*"
"""As the level of a requirement: any location inside the enclosing one."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """One allocatable resource of a location: total and usage in one unit; ``units`` restricts the amounts."""

    allocatable: int
    used: int = 0
    units: Units = ANY_AMOUNT


@dataclass(frozen=True, slots=True)
class Location:
    """A place with resources of its own and smaller places inside.

    Args:
        name: unique among its siblings of the same level; breaks ties, in natural order.
        level: the kind of place (``numa``, ``gpu``); ignored for the root.
        capacities: its own resources, excluding those of the places inside.
    """

    name: str = ""
    level: str = ""
    capacities: Mapping[str, Capacity] = field(default_factory=dict)
    children: tuple["Location", ...] = ()


@dataclass(frozen=True, slots=True)
class Requirement:
    """A request for one location of a level, with requirements for locations inside it.

    Args:
        label: tells it from its siblings; never compared with the name of a location.
        level: the level of the location, or ``ANYWHERE``; ignored for a requirement on the root itself.
        amounts: what the location itself must offer.
        parts: the requirements to serve inside the location, at any depth.
        phase: when it runs; the outermost requirement's applies to all its parts.
        only: if given, the only locations it may have.
    """

    label: str = ""
    level: str = ""
    amounts: Mapping[str, int] = field(default_factory=dict)
    parts: tuple["Requirement", ...] = ()
    phase: Phase = Phase.RUNNING
    only: frozenset[Path] | None = None


@dataclass(frozen=True, slots=True)
class Placed:
    """A requirement and the location it got; its parts are in the requirement's order."""

    requirement: Requirement
    path: Path
    parts: tuple["Placed", ...] = ()

    def walk(self) -> Iterator["Placed"]:
        """Yield this requirement and all its parts, outermost first."""
        yield self
        for part in self.parts:
            yield from part.walk()


MAX_GROUPS = 32
"""The deepest nesting of groups."""


@dataclass(slots=True)
class NamedGroup:
    """The resources of one group and the groups inside it."""

    base: dict[str, int] = field(default_factory=dict)
    inside: dict[tuple[str, str], "NamedGroup"] = field(default_factory=dict)


def split_name(name: str) -> tuple[Path, str]:
    """Split a name into its (group, index) pairs and its base name; the inverse of ``join_name``.

    Raises:
        ValueError: a part of the name is empty, or more than 32 groups are nested.

    >>> split_name("Gpugrp0/A/gpu/dev0/cards")
    ((('Gpugrp0', 'A'), ('gpu', 'dev0')), 'cards')
    >>> split_name("vendor/cpu")
    ((), 'vendor/cpu')
    """
    parts = name.split("/")
    if not all(parts):
        raise ValueError(f"A part of the resource name {name!r} is empty.")
    count = (len(parts) - 1) // 2
    if count > MAX_GROUPS:
        raise ValueError(f"In a resource name of {len(parts)} parts more than {MAX_GROUPS} groups are nested.")
    return tuple([(parts[2 * place], parts[2 * place + 1]) for place in range(count)]), "/".join(parts[2 * count :])


def join_name(path: Path, base: str) -> str:
    """Build the name of a base resource inside groups."""
    return "/".join([*[part for step in path for part in step], base])


def partition(amounts: Mapping[str, int]) -> NamedGroup:
    """Group resources the way their names spell out."""
    root = NamedGroup()
    for name, amount in amounts.items():
        path, base = split_name(name)
        group = root
        for step in path:
            group = group.inside.setdefault(step, NamedGroup())
        group.base[base] = amount
    return root


def location_tree(allocatable: Mapping[str, int], used: Mapping[str, int]) -> Location:
    """Build the tree that allocatable names spell out; ValueError if one is invalid or used but not allocatable."""
    unknown = sorted(used.keys() - allocatable.keys())
    if unknown:
        raise ValueError(f"{unknown[0]!r} is used but not allocatable.")

    def location(group: NamedGroup, path: Path) -> Location:
        level, name = path[-1] if path else ("", "")
        capacities = {base: Capacity(total, used.get(join_name(path, base), 0)) for base, total in group.base.items()}
        inside = tuple([location(inner, (*path, step)) for step, inner in group.inside.items()])
        return Location(name, level, capacities, inside)

    return location(partition(allocatable), ())


def requirement_tree(requested: Mapping[str, int], phase: Phase, recorded: Mapping[str, str]) -> Requirement:
    """Build the requirement that requested names spell out; ``recorded`` has what some were placed on before.

    Raises:
        ValueError: a name is invalid, or a recorded placement contradicts the resource's groups.
    """
    pins: dict[Path, Path] = {}
    for name, target in recorded.items():
        _pin(split_name(name)[0], split_name(target)[0], pins)

    def requirement(group: NamedGroup, path: Path) -> Requirement:
        level, label = path[-1] if path else ("", "")
        parts = tuple([requirement(inner, (*path, step)) for step, inner in group.inside.items()])
        only = frozenset([pins[path]]) if path in pins else None
        return Requirement(label, level, group.base, parts, phase, only)

    return requirement(partition(requested), ())


def _pin(path: Path, target: Path, pins: dict[Path, Path]) -> None:
    """Pin a group, and each group around it, to where it was placed; the target may have extra groups in between."""
    end = len(target)
    for length in range(len(path), 0, -1):
        level = path[length - 1][0]
        while end and target[end - 1][0] != level:
            end -= 1
        if not end or (length == len(path) and end < len(target)):
            raise ValueError(
                f"What is recorded for {join_name(path, '...')} has other groups: {join_name(target, '...')}."
            )
        if pins.setdefault(path[:length], target[:end]) != target[:end]:
            raise ValueError(f"There are two records of where {join_name(path[:length], '...')} was placed.")
        end -= 1


LevelTree = dict[str, "LevelTree"]
"""The levels that occur inside a location, each with those inside it."""


def translated(requested: Requirement, root: Location) -> Requirement:
    """Return a request in which each part is inside requirements of its own for all levels around it (part V).

    Where a level occurs at several depths, the shallowest counts; locations without a level do not. Placement does not
    need this, but groups that nobody asks for keep nothing apart, while each group here gets outer ones of its own.

    >>> device = Location("dev0", "gpu")
    >>> root = Location(children=(Location("0", "grp1", children=(Location("0", "grp0", children=(device,)),)),))
    >>> (outer,) = translated(Requirement(parts=(Requirement("RA", "grp0"),)), root).parts
    >>> outer.level, [part.label for part in outer.parts]
    ('grp1', ['RA'])
    """
    levels: LevelTree = {}
    _add_levels(root, levels)
    return _translated(requested, levels)


def _add_levels(location: Location, levels: LevelTree) -> None:
    for child in location.children:
        _add_levels(child, levels.setdefault(child.level, {}) if child.level else levels)


def _translated(requirement: Requirement, levels: LevelTree) -> Requirement:
    parts = []
    for part in requirement.parts:
        around, inside = _way_to(part.level, levels)
        whole = _translated(part, inside)
        for level in reversed(around):
            whole = Requirement(level=level, parts=(whole,), phase=part.phase)
        parts.append(whole)
    return replace(requirement, parts=tuple(parts))


def _way_to(level: str, levels: LevelTree) -> tuple[tuple[str, ...], LevelTree]:
    """Return the levels around the shallowest occurrence of a level, outermost first, and what is inside it."""
    ways: list[tuple[tuple[str, ...], LevelTree]] = [((), levels)]
    for around, levels_here in ways:
        if level in levels_here:
            return around, levels_here[level]
        ways += [((*around, name), levels_here[name]) for name in sorted(levels_here, key=natural_key)]
    return (), {}
