"""Automatic topology: a plain count of devices is rewritten into the best shape that nodes have.

The seed's allocator looks at shapes only, not at what is free: of all shapes with enough devices it takes the one
whose tree is most closely tied together, and fills it from its biggest branch on.
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
        count: how many devices there are.
        inside: the groups inside, those with most devices first, then those tied together most closely.
    """

    level: str
    count: int
    inside: tuple["TopologyShape", ...] = ()

    def score(self, depth: int = 1) -> Fraction:
        """Return how closely the devices are tied together: more in deeper groups with fewer beside them is closer.

        The sum over all groups of depth x devices / groups beside it, itself included (vector GA-23).
        """
        beside = len(self.inside)
        own = [Fraction(depth * shape.count, beside) + shape.score(depth + 1) for shape in self.inside]
        return sum(own, start=Fraction(0))


def shape_of(allocatable: Iterable[str], *, group: str = "gpu", base: str = "cards") -> TopologyShape:
    """Return the shape of a node.

    Args:
        allocatable: the names of what the node offers.
        group: the group name of a device.
        base: what makes it a device that counts.

    Raises:
        ValueError: a name is not valid.

    >>> shape_of(["link/0/gpu/0/cards", "link/0/gpu/1/cards", "link/1/gpu/2/cards"]).inside[0]
    TopologyShape(level='link', count=2, inside=())
    """
    paths = [path for path, last in map(split_name, allocatable) if path and path[-1][0] == group and last == base]
    return _shape("", [path[:-1] for path in paths])


def _shape(level: str, devices: Sequence[Path]) -> TopologyShape:
    """Return the shape of a group from the groups that lead to each of its devices."""
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
    """Return a request for a count of devices in the best shape known.

    Args:
        count: the number of devices.
        shapes: the shapes of all nodes.
        topology: what the request says of it: 1, or nothing, for the best shape; 0 for devices without any groups.
        group: the group name of a device.
        base: what one of which is asked of each device.

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
    """Return the groups around each of some devices, in the order of the shape."""
    found: list[Path] = []
    for number, inner in enumerate(shape.inside):
        found += _fill(inner, min(inner.count, count - len(found)), (*path, (inner.level, str(number))))
    return found + [path] * (count - len(found))
