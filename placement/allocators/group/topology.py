"""Automatic topology: rewrites a plain device count into the best shape that nodes have.

The paper's allocator looks only at shapes, not at what is free: among shapes with enough devices, it picks the one
whose tree is most closely connected, and fills it from its largest branch on.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from placement.allocators.group.names import join_name, split_name
from placement.allocators.group.tree import Path
from placement.allocators.natural_order import natural_key


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
