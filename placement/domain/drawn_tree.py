"""Which providers of a tree a drawing has room for: all, or a part around the one that is looked at."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from placement.domain.ancestry import upwards


@dataclass(frozen=True, slots=True)
class Drawing:
    """A part of a tree, by ids.

    Args:
        top: the provider on top of the drawing.
        children: what is drawn below each provider that is drawn.
        hidden: how many providers are below one that is drawn, and are not, where there are any.
        is_whole: whether nothing is above the top.
    """

    top: int
    children: Mapping[int, list[int]]
    hidden: Mapping[int, int]
    is_whole: bool

    @property
    def drawn(self) -> list[int]:
        """All that is drawn."""
        return list(self.children)


def drawing(parents: Mapping[int, int | None], focus: int, *, most: int, deepest: int) -> Drawing:
    """Choose what is drawn: the whole tree where there is room, else what is below ``focus``, the nearest first.

    Args:
        parents: the parent of each provider of the tree. Siblings are drawn in this order, but those that have
            something below them first.
        focus: the provider that is looked at.
        most: for how many providers there is room.
        deepest: how many levels are drawn.
    """
    below = _children(parents)
    above = ancestors(parents, focus)
    whole = len(parents) <= most and len(above) < deepest
    top = above[0] if whole and above else focus
    children = _drawn(below, top, most=most, deepest=deepest)
    sizes = _sizes(below, top)
    hidden = {id_: sizes[id_] - 1 - sum(sizes[child] for child in drawn) for id_, drawn in children.items()}
    return Drawing(top, children, {id_: count for id_, count in hidden.items() if count}, whole)


def _children(parents: Mapping[int, int | None]) -> dict[int, list[int]]:
    below: dict[int, list[int]] = {id_: [] for id_ in parents}
    for id_, parent in parents.items():
        if parent in below:
            below[parent].append(id_)
    return below


def ancestors(parents: Mapping[int, int | None], id_: int) -> list[int]:
    """Return what is above a provider, the root first."""
    above = [provider for provider in upwards(id_, parents) if provider in parents]
    return above[:0:-1]


def _drawn(below: Mapping[int, list[int]], top: int, *, most: int, deepest: int) -> dict[int, list[int]]:
    children: dict[int, list[int]] = {top: []}
    waiting = deque([(top, 1)])
    while waiting:
        id_, depth = waiting.popleft()
        # What has parts of its own comes first, as the large things in a box do.
        for child in sorted(below[id_], key=lambda child: not below[child]) if depth < deepest else ():
            if len(children) >= most:
                return children
            if child not in children:
                children[id_].append(child)
                children[child] = []
                waiting.append((child, depth + 1))
    return children


def _sizes(below: Mapping[int, list[int]], top: int) -> dict[int, int]:
    """Return of how many providers the part of the tree below each provider consists, itself included."""
    order = [top]
    seen = {top}
    for id_ in order:
        new = [child for child in below[id_] if child not in seen]
        seen.update(new)
        order += new
    sizes = dict.fromkeys(order, 1)
    parent_of = {child: id_ for id_ in order for child in below[id_] if child != top}
    for id_ in reversed(order[1:]):
        sizes[parent_of[id_]] += sizes[id_]
    return sizes
