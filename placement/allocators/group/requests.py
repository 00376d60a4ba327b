"""Fills in the outer groups that a request omits (part V of the paper).

Placement does not need this: a group may be served at any depth. But groups that nobody asks for keep nothing apart,
while each group here gets outer ones of its own.
"""

from dataclasses import replace

from placement.allocators.group.tree import Location, Requirement
from placement.allocators.natural_order import natural_key

LevelTree = dict[str, "LevelTree"]
"""The levels that occur inside a location, each with those inside it."""


def translated(requested: Requirement, root: Location) -> Requirement:
    """Return a request in which each part is inside requirements of its own for all levels around it.

    Where a level occurs at several depths, the shallowest counts.

    Args:
        requested: the request for the root.
        root: the locations; their names do not matter, nor do locations without a level.

    >>> device = Location("dev0", "gpu")
    >>> root = Location(children=(Location("0", "grp1", children=(Location("0", "grp0", children=(device,)),)),))
    >>> (outer,) = translated(Requirement(parts=(Requirement("RA", "grp0"),)), root).parts
    >>> outer.level, [part.label for part in outer.parts]
    ('grp1', ['RA'])
    """
    return _translated(requested, _levels_inside(root))


def _levels_inside(location: Location) -> LevelTree:
    levels: LevelTree = {}
    for child in location.children:
        _merge(levels, {child.level: _levels_inside(child)} if child.level else _levels_inside(child))
    return levels


def _merge(levels: LevelTree, more: LevelTree) -> None:
    for level, inside in more.items():
        _merge(levels.setdefault(level, {}), inside)


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
    for around, beside in ways:
        if level in beside:
            return around, beside[level]
        ways += [((*around, name), beside[name]) for name in sorted(beside, key=natural_key)]
    return (), {}
