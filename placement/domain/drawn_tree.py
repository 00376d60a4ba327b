"""Which providers of a tree to draw: all if there is room, otherwise a part around the selected one."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from placement.domain.places import upwards


@dataclass(frozen=True, slots=True)
class Drawing:
    """The part of a tree to draw, by ids.

    ``hidden`` has how many descendants of a provider drawn are not drawn, nor below another one drawn, if any.
    """

    top: int
    children: Mapping[int, list[int]]
    hidden: Mapping[int, int]
    is_whole: bool

    @property
    def drawn(self) -> list[int]:
        """All providers drawn."""
        return list(self.children)


def drawing(parents: Mapping[int, int | None], focus: int, *, max_providers: int, deepest: int) -> Drawing:
    """Choose what to draw: the whole tree if it fits, otherwise what is below ``focus``, nearest first.

    Siblings are drawn in the order of ``parents``, but those with children first.
    """
    below = _children(parents)
    above = ancestors(parents, focus)
    whole = len(parents) <= max_providers and len(above) < deepest
    top = above[0] if whole and above else focus
    children = _drawn(below, top, max_providers=max_providers, deepest=deepest)
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
    """Return a provider's ancestors, the root first."""
    above = [provider for provider in upwards(id_, parents) if provider in parents]
    return above[:0:-1]


def _drawn(below: Mapping[int, list[int]], top: int, *, max_providers: int, deepest: int) -> dict[int, list[int]]:
    children: dict[int, list[int]] = {top: []}
    waiting = deque([(top, 1)])
    while waiting:
        id_, depth = waiting.popleft()
        # Providers with children come first, like the large things in a box.
        for child in sorted(below[id_], key=lambda child: not below[child]) if depth < deepest else ():
            if len(children) >= max_providers:
                return children
            if child not in children:
                children[id_].append(child)
                children[child] = []
                waiting.append((child, depth + 1))
    return children


def _sizes(below: Mapping[int, list[int]], top: int) -> dict[int, int]:
    """Return the size of the subtree at each provider, itself included."""
    order = [top]
    visited = {top}
    for id_ in order:
        new = [child for child in below[id_] if child not in visited]
        visited.update(new)
        order += new
    sizes = dict.fromkeys(order, 1)
    parent_of = {child: id_ for id_ in order for child in below[id_] if child != top}
    for id_ in reversed(order[1:]):
        sizes[parent_of[id_]] += sizes[id_]
    return sizes
