"""Hierarchical resource names like ``Gpugrp0/A/gpu/dev0/cards``: taking them apart and making trees of them.

A name with fewer than two separators is a base resource and compared as it is. Any other reads group/index/rest: the
rest is a name inside one group, of which only the group's name is compared; its index is a label (the seed's partition,
equations 4 to 13).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from placement.allocators.group.scorers import Phase
from placement.allocators.group.tree import Capacity, Location, Path, Requirement

MOST_GROUPS = 32
"""How many groups may be nested."""


@dataclass(slots=True)
class NamedGroup:
    """The resources of one group and the groups inside it.

    Args:
        base: the base resources.
        inside: the groups inside by (group name, index).
    """

    base: dict[str, int] = field(default_factory=dict)
    inside: dict[tuple[str, str], "NamedGroup"] = field(default_factory=dict)


def split_name(name: str) -> tuple[Path, str]:
    """Return the (group, index) pairs of a name and its base name.

    Raises:
        ValueError: a part of the name is empty or more than 32 groups are nested.

    >>> split_name("Gpugrp0/A/gpu/dev0/cards")
    ((('Gpugrp0', 'A'), ('gpu', 'dev0')), 'cards')
    >>> split_name("vendor/cpu")
    ((), 'vendor/cpu')
    """
    parts = name.split("/")
    if not all(parts):
        raise ValueError(f"A part of the resource name {name!r} is empty.")
    count = (len(parts) - 1) // 2
    if count > MOST_GROUPS:
        raise ValueError(f"In a resource name of {len(parts)} parts more than {MOST_GROUPS} groups are nested.")
    return tuple([(parts[2 * place], parts[2 * place + 1]) for place in range(count)]), "/".join(parts[2 * count :])


def join_name(path: Path, base: str) -> str:
    """Return the name of a base resource inside groups.

    >>> join_name((("gpu", "dev0"),), "cards")
    'gpu/dev0/cards'
    """
    return "/".join([*[part for step in path for part in step], base])


def partition(amounts: Mapping[str, int]) -> NamedGroup:
    """Return the base resources and groups that names spell out.

    >>> partition({"cpu": 2, "gpu/0/cards": 1}).inside
    {('gpu', '0'): NamedGroup(base={'cards': 1}, inside={})}
    """
    root = NamedGroup()
    for name, amount in amounts.items():
        path, base = split_name(name)
        group = root
        for step in path:
            group = group.inside.setdefault(step, NamedGroup())
        group.base[base] = amount
    return root


def location_tree(allocatable: Mapping[str, int], used: Mapping[str, int]) -> Location:
    """Return the locations that the names of allocatable resources spell out.

    Args:
        allocatable: how much there is of each resource.
        used: how much of it is in use; what is not named is not in use.

    Raises:
        ValueError: something is used that is not allocatable, or a name is not valid.
    """
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
    """Return the requirement that the names of requested resources spell out.

    Args:
        requested: how much is asked for of each resource.
        phase: when the container runs.
        recorded: for resources that have been placed already, what they were placed on.

    Raises:
        ValueError: a name is not valid, or what is recorded of a resource contradicts its groups.
    """
    pins: dict[Path, Path] = {}
    for name, target in recorded.items():
        _pin(split_name(name)[0], split_name(target)[0], pins)

    def requirement(group: NamedGroup, path: Path) -> Requirement:
        level, label = path[-1] if path else ("", "")
        parts = tuple([requirement(inner, (*path, step)) for step, inner in group.inside.items()])
        return Requirement(label, level, group.base, parts, phase, pins.get(path))

    return requirement(partition(requested), ())


def _pin(path: Path, target: Path, pins: dict[Path, Path]) -> None:
    """Note where the group of a resource, and each around it, was placed; the target may have groups in between."""
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
