"""Expands shorthand requests: omitted outer groups, plain device counts, and the best topology for such a count.

The paper's automatic topology looks only at shapes, not at what is free: among shapes with enough devices, it picks the
one whose tree is most closely connected, and fills it from its largest branch on.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from placement.allocators.group.tree import NamedGroup, Path, join_name, partition, split_name
from placement.allocators.natural_order import natural_key


@dataclass(slots=True)
class _LevelTree:
    """Which group names occur inside which, regardless of index."""

    inside: dict[str, "_LevelTree"] = field(default_factory=dict)

    def way_to(self, level: str) -> tuple[str, ...] | None:
        """Return the shortest chain of groups down to and including one of a level; None if there is none."""
        ways: list[tuple[tuple[str, ...], _LevelTree]] = [((), self)]
        for way, levels in ways:
            for name in sorted(levels.inside, key=natural_key):
                if name == level:
                    return (*way, name)
                ways.append(((*way, name), levels.inside[name]))
        return None


def translated(requested: Mapping[str, int], allocatable: Iterable[str]) -> dict[str, str]:
    """Return the full names of requested resources whose names omit outer groups.

    Each group with omitted outer groups gets new ones of its own, numbered from the highest index of that group in the
    request (seed, part V; vectors GA-09 to GA-11). Placement does not need this: a group may be served at any depth,
    and groups nobody asked for keep nothing apart.

    Args:
        requested: the request.
        allocatable: the names that the locations offer.

    Raises:
        ValueError: a name is invalid.

    >>> node = ["Gpugrp1/0/Gpugrp0/0/gpu/dev0/cards"]
    >>> translated({"Gpugrp0/RA/gpu/gpu0/cards": 1}, node)
    {'Gpugrp0/RA/gpu/gpu0/cards': 'Gpugrp1/0/Gpugrp0/RA/gpu/gpu0/cards'}
    """
    request = partition(requested)
    names = dict(_Translation(request).names(request, _levels_of(allocatable), (), ()))
    return {name: names[name] for name in requested}


class _Translation:
    """Numbers the new outer groups."""

    def __init__(self, request: NamedGroup) -> None:
        self._next: dict[str, int] = {}
        self._count(request)

    def _count(self, group: NamedGroup) -> None:
        for (level, index), inner in group.inside.items():
            number = int(index) + 1 if index.isdecimal() else 0
            self._next[level] = max(self._next.get(level, 0), number)
            self._count(inner)

    def names(self, group: NamedGroup, levels: _LevelTree | None, old: Path, new: Path) -> Iterator[tuple[str, str]]:
        """Yield the old and the new name of everything in a group of the request.

        Args:
            group: the group.
            levels: the groups that locations have inside it, if known.
            old: its path in the request.
            new: its path after translation.
        """
        for base in group.base:
            yield join_name(old, base), join_name(new, base)
        for step in sorted(group.inside, key=lambda step: (natural_key(step[0]), natural_key(step[1]))):
            way = levels.way_to(step[0]) if levels else None
            inner = levels
            for level in way or ():
                inner = inner.inside[level] if inner else None
            upper = tuple([(level, self._number(level)) for level in (way or ())[:-1]])
            yield from self.names(group.inside[step], inner if way else None, (*old, step), (*new, *upper, step))

    def _number(self, level: str) -> str:
        number = self._next.get(level, 0)
        self._next[level] = number + 1
        return str(number)


def _levels_of(names: Iterable[str]) -> _LevelTree:
    root = _LevelTree()
    for name in names:
        levels = root
        for level, _index in split_name(name)[0]:
            levels = levels.inside.setdefault(level, _LevelTree())
    return root


def with_count(requested: Mapping[str, int], count: int, *, group: str = "gpu", base: str = "cards") -> dict[str, int]:
    """Return a request extended to a plain count of devices.

    Devices that the request already names count; the rest are added without outer groups, numbered from the highest
    index in the request.

    Args:
        requested: the request so far.
        count: the number of devices.
        group: the group name of a device.
        base: the resource to ask one unit of from each device.

    Raises:
        ValueError: a name is invalid.

    >>> with_count({"cpu": 4, "gpu/7/cards": 1}, 2)
    {'cpu': 4, 'gpu/7/cards': 1, 'gpu/8/cards': 1}
    """
    devices = set()
    for name in requested:
        path, last = split_name(name)
        if path and path[-1][0] == group and last == base:
            devices.add(path)
    numbers = [int(path[-1][1]) for path in devices if path[-1][1].isdecimal()]
    first = max(numbers, default=-1) + 1
    missing = range(first, first + count - len(devices))
    return dict(requested) | {f"{group}/{number}/{base}": 1 for number in missing}


@dataclass(frozen=True, slots=True)
class TopologyShape:
    """How devices are grouped on a node, without names.

    Args:
        level: the group name; "" for the node itself.
        count: the number of devices.
        inside: the groups inside, by descending number of devices, then by how closely connected they are.
    """

    level: str
    count: int
    inside: tuple["TopologyShape", ...] = ()

    def score(self, depth: int = 1) -> Fraction:
        """Return how closely connected the devices are: more devices in deeper groups with fewer siblings score higher.

        The sum over all groups of depth x devices / siblings, counting the group itself (vector GA-23).
        """
        beside = len(self.inside)
        own = [Fraction(depth * shape.count, beside) + shape.score(depth + 1) for shape in self.inside]
        return sum(own, start=Fraction(0))


def shape_of(allocatable: Iterable[str], *, group: str = "gpu", base: str = "cards") -> TopologyShape:
    """Return the shape of a node.

    Args:
        allocatable: the names of the node's resources.
        group: the group name of a device.
        base: the resource that marks a device.

    Raises:
        ValueError: a name is invalid.

    >>> shape_of(["link/0/gpu/0/cards", "link/0/gpu/1/cards", "link/1/gpu/2/cards"]).inside[0]
    TopologyShape(level='link', count=2, inside=())
    """
    paths = [path for path, last in map(split_name, allocatable) if path and path[-1][0] == group and last == base]
    return _shape("", [path[:-1] for path in paths])


def _shape(level: str, devices: Sequence[Path]) -> TopologyShape:
    """Return the shape of a group, given the path of groups to each of its devices."""
    groups: dict[tuple[str, str], list[Path]] = {}
    for path in devices:
        if path:
            groups.setdefault(path[0], []).append(path[1:])
    inside = [_shape(step[0], inner) for step, inner in groups.items()]
    inside.sort(key=lambda shape: (-shape.count, -shape.score(), natural_key(shape.level), repr(shape)))
    return TopologyShape(level, len(devices), tuple(inside))


def arranged(
    count: int, shapes: Iterable[TopologyShape], *, topology: int | None = None, group: str = "gpu", base: str = "cards"
) -> dict[str, int]:
    """Return a request for a number of devices in the best known shape.

    Args:
        count: the number of devices.
        shapes: the shapes of all nodes.
        topology: what the request says of it: 1 or None for the best shape, 0 for devices without groups.
        group: the group name of a device.
        base: the resource to ask one unit of from each device.

    Raises:
        ValueError: topology is another number.

    >>> node = shape_of([f"link/{number // 2}/gpu/{number}/cards" for number in range(4)])
    >>> list(arranged(3, [node]))
    ['link/0/gpu/0/cards', 'link/0/gpu/1/cards', 'link/1/gpu/2/cards']
    """
    if topology not in {None, 0, 1}:
        raise ValueError(f"The topology asked for is {topology}; it can be 0 or 1.")
    fitting = [shape for shape in shapes if shape.count >= count]
    best = min(fitting, key=lambda shape: (-shape.score(), repr(shape)), default=TopologyShape("", count))
    paths = _fill(best if topology != 0 else TopologyShape("", count), count, ())
    return {join_name((*path, (group, str(number))), base): 1 for number, path in enumerate(paths)}


def _fill(shape: TopologyShape, count: int, path: Path) -> list[Path]:
    """Return the groups around each of the devices, in the order of the shape."""
    found: list[Path] = []
    for number, inner in enumerate(shape.inside):
        found += _fill(inner, min(inner.count, count - len(found)), (*path, (inner.level, str(number))))
    return found + [path] * (count - len(found))
