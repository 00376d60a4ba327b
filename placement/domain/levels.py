"""The places of levels that the providers of trees lie in: which NUMA node, which PCIe switch, each as one bit.

A set of places is an integer, so that what a candidate touches is an OR over its providers. Bits tell the places of one
tree apart, and are used again in the next.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Set
from typing import NamedTuple


class Places(NamedTuple):
    """Where the providers of one tree lie.

    ``of`` has the places of each provider, of all levels; those that lie in none may be missing, and others may be
    there. ``levels`` has for each level, outermost first, all its places.
    """

    of: Mapping[int, int]
    levels: tuple[int, ...]

    def counts(self, touched: int) -> tuple[int, ...]:
        """Return how many places of each level are touched, at least 1 (``allocators.compactness`` tells why).

        >>> Places({}, (0b0011, 0b1100)).counts(0b0111)
        (2, 1)
        """
        return tuple([max(1, (touched & places).bit_count()) for places in self.levels])


NOWHERE = Places({}, ())


class Layout:
    """The places in some trees. A provider lies in the nearest one of each level, going up from itself.

    Args:
        parents: the parent of each provider from those who are asked about, and from every place, up to the roots.
        marks: for each provider that is a place its levels as bits, the outermost lowest.
        homes: the root of the tree that each place is in.
        levels: how many levels there are.

    >>> layout = Layout({1: None, 2: 1, 3: 2, 4: 1}, {2: 0b1}, {2: 1}, levels=1)
    >>> layout.inside({2, 3, 4}), layout.masks, layout.levels
    ({3: 2}, {2: 1}, (1,))
    """

    def __init__(
        self, parents: Mapping[int, int | None], marks: Mapping[int, int], homes: Mapping[int, int], *, levels: int
    ) -> None:
        self._parents = parents
        self._marks = marks
        self._homes = homes
        roots = Counter(homes.values())
        # The n-th place of a tree has the n-th bit of each level.
        shifts = range(0, levels * max(roots.values(), default=0), levels)
        self.levels = tuple([sum([1 << shift + number for shift in shifts]) for number in range(levels)])
        """For each level all bits of its places, the same in all trees."""
        next_shift = {root: iter(shifts).__next__ for root in roots}
        own = {place: marks[place] << next_shift[homes[place]]() for place in sorted(marks)}
        self._outer = self._above(marks.keys())
        self.masks = self._with_outer(own) if self._outer else own
        """For each place the set of places that whatever is in it lies in."""

    def _above(self, providers: Set[int]) -> dict[int, int]:
        """Return the innermost place above each provider that has one. O(providers and all above them)."""
        parents, places = self._parents, self._marks
        layers: list[Set[int]] = [providers]
        is_any = False
        while above := {parent for parent in map(parents.get, layers[-1]) if parent is not None}:
            layers.append(above - places.keys())
            is_any |= len(layers[-1]) < len(above)
        found: dict[int, int] = {}
        # Where no place is met, as mostly, nothing is left to do for each of many thousands.
        for layer in reversed(layers) if is_any else ():
            for provider in layer:
                parent = parents.get(provider)
                if parent is not None and (parent in places or parent in found):
                    found[provider] = parent if parent in places else found[parent]
        return {provider: found[provider] for provider in providers if provider in found}

    def _with_outer(self, own: Mapping[int, int]) -> dict[int, int]:
        """Add to the bits of each place those of the places around it, of the levels that it is none of."""
        of_mark = {mark: self._all_of(mark) for mark in {*self._marks.values()}}
        masks = {place: mask for place, mask in own.items() if place not in self._outer}
        waiting = [place for place in own if place in self._outer]
        while waiting:
            for place in [place for place in waiting if self._outer[place] in masks]:
                masks[place] = own[place] | masks[self._outer[place]] & ~of_mark[self._marks[place]]
            waiting = [place for place in waiting if place not in masks]
        return masks

    def _all_of(self, mark: int) -> int:
        """Return all bits of the levels in a mark."""
        return sum([bits for number, bits in enumerate(self.levels) if mark >> number & 1])

    def inside(self, providers: Set[int]) -> dict[int, int]:
        """Return the innermost place around each provider that lies in one and is none."""
        return self._above(providers - self._marks.keys())

    def masks_of(self, inside: Mapping[int, int]) -> dict[int, int]:
        """Return the set of places that each place, and each provider inside of one, lies in."""
        return self.masks | {provider: self.masks[place] for provider, place in inside.items()}

    def around(self, fits: Mapping[int, float], inside: Mapping[int, int]) -> dict[int, float]:
        """Return how much fits where each provider lies: in its innermost place and inside of it, or else on itself.

        Args:
            fits: how much fits on each.
            inside: the innermost place around those of them that lie in one and are none.
        """
        sums = defaultdict(float, fits)
        for provider, place in inside.items():
            sums[place] += sums[provider]
        if self._outer:
            sums = self._with_inner(sums)
        return sums | {provider: sums[place] for provider, place in inside.items()}

    def _with_inner(self, sums: Mapping[int, float]) -> defaultdict[int, float]:
        found: defaultdict[int, float] = defaultdict(float)
        for inner, much in sums.items():
            found[inner] += much
            outer = self._outer.get(inner)
            while outer is not None:
                # A place around it of the same level is another place than this one, and has no part of it.
                if not self.masks[outer] & ~self.masks[inner]:
                    found[outer] += much
                outer = self._outer.get(outer)
        return found

    def trees_in_use(self, providers: Set[int], inside: Mapping[int, int]) -> set[int]:
        """Return the roots of the trees of which one of some providers lies in a place."""
        used = (providers & self._marks.keys()).union(inside.values())
        return {*map(self._homes.__getitem__, used)}
