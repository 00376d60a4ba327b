"""The Group Allocator: matches hierarchical requests for devices in groups to the hierarchical names nodes offer.

After S. Mehrotra, "Group Allocator" (KubeGPU), made exact: it finds a placement whenever one exists, and the best one
in the order of ``Objective``. Where the original implementation behaves differently, that is an accident of its labels
or of its lack of backtracking. ``place`` works on trees of locations; here is what names such as
``Gpugrp0/A/gpu/dev0/cards`` make of it. A name with fewer than two separators is a base resource and compared verbatim.
Any other name reads group/index/rest, where the rest is a name inside that group. Only the group's name is compared;
its index is a label (the paper's partition, equations 4 to 13).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from placement.allocators.group.locations import USUAL_RULES, Objective, Rules
from placement.allocators.group.place import place
from placement.allocators.group.tree import Capacity, Location, Path, Phase, Placed, Requirement

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


@dataclass(frozen=True, slots=True)
class Container:
    """One request.

    Args:
        requested: the amount of each resource by hierarchical name, in the resource's unit.
        phase: running containers add up; an init container reuses what the others take and does not affect the score.
        recorded: for resources placed before, the names of what they got; they keep it.
    """

    requested: Mapping[str, int]
    phase: Phase = Phase.RUNNING
    recorded: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Offer:
    """A node's allocatable resources by hierarchical name, and how much of them is in use."""

    allocatable: Mapping[str, int]
    used: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GroupAllocation:
    """The outcome for one node; ``feasible``, ``complete`` and ``objective`` as in ``Placement``.

    Args:
        score: the paper's score, 0..1; 0 if nothing was asked for or found.
        mappings: for each container, in the order given: requested name -> the name of what it got.
        taken: the total amount that the containers take of each resource.
    """

    feasible: bool
    complete: bool
    score: float = 0.0
    mappings: tuple[Mapping[str, str], ...] = ()
    taken: Mapping[str, int] = field(default_factory=dict)
    objective: Objective | None = None


def allocate(node: Offer, containers: Sequence[Container], rules: Rules = USUAL_RULES) -> GroupAllocation:
    """Place all containers of one workload on a node; groups that a request leaves out are filled in.

    Raises:
        ValueError: a name or an amount is invalid, a scorer returned a score outside 0..1, or the request has more than
            200 groups.

    The paper's example: two GPUs with at least 1 and 2 GiB.

    >>> sizes = {"dev0": 1, "dev1": 3, "dev2": 2, "dev3": 4}
    >>> offer = {"cpu": 4} | {f"gpu/{name}/memory": size for name, size in sizes.items()}
    >>> wanted = Container({"cpu": 2, "gpu/0/memory": 1, "gpu/1/memory": 2})
    >>> allocate(Offer(offer), [wanted]).mappings[0]
    {'cpu': 'cpu', 'gpu/0/memory': 'gpu/dev0/memory', 'gpu/1/memory': 'gpu/dev2/memory'}
    """
    root = location_tree(node.allocatable, node.used)
    requirements = [
        requirement_tree(container.requested, container.phase, container.recorded) for container in containers
    ]
    if not any([container.requested for container in containers]):
        return GroupAllocation(feasible=True, complete=True, mappings=tuple([{} for _container in containers]))
    placement = place(root, requirements, rules)
    if placement.objective is None:
        return GroupAllocation(placement.feasible, placement.complete)
    mappings = zip([dict(_pairs(placed, ())) for placed in placement.placed], containers, strict=True)
    return GroupAllocation(
        placement.feasible,
        placement.complete,
        score=float(placement.objective.score),
        mappings=tuple([{name: mapping[name] for name in container.requested} for mapping, container in mappings]),
        taken={join_name(path, base): amount for (path, base), amount in placement.taken.items()},
        objective=placement.objective,
    )


def _pairs(placed: Placed, path: Path) -> Iterator[tuple[str, str]]:
    """Yield each requested name inside a group with the name of what it got (the paper's equation 15)."""
    for base in placed.requirement.amounts:
        yield join_name(path, base), join_name(placed.path, base)
    for part in placed.parts:
        yield from _pairs(part, (*path, (part.requirement.level, part.requirement.label)))
