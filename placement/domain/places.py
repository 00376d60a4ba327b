"""How providers are nested, and the places of each level, such as NUMA nodes or PCIe switches, that they lie in.

A set of places is an integer, a *place mask*, so what a candidate touches is an OR over its providers. Bits are unique
within a tree and reused in the next one. Where the provider that a place is named after matters, its *anchor*, there
are positions instead of masks.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import or_
from typing import NamedTuple, TypeVar


class PlaceLock(NamedTuple):
    """The lock of a level: whoever has taken all of it at a place holds that exclusively, with everything below.

    Args:
        resource_class: the class that places of the level have inventory of.
        trait: the trait that makes a provider a place of the level; None if every provider is one.
    """

    resource_class: str
    trait: str | None


Parents = Mapping[int, int | None]
"""Provider -> its parent, None for roots."""


def upwards(provider: int, parents: Parents) -> Iterator[int]:
    """Yield a provider and all its ancestors, the root last.

    Stops at a cycle, which only a DBA can create, and at a provider whose parent is not known.
    >>> [*upwards(3, {1: None, 2: 1, 3: 2})]
    [3, 2, 1]
    """
    seen = set[int]()
    here: int | None = provider
    while here is not None and here not in seen:
        seen.add(here)
        yield here
        here = parents.get(here)


def with_all_above(providers: Iterable[int], parents: Parents) -> set[int]:
    """Return some providers with all their ancestors. O(size of the result).

    >>> sorted(with_all_above([3, 4], {1: None, 2: 1, 3: 2, 4: 2, 5: 1}))
    [1, 2, 3, 4]
    """
    found = set[int]()
    for provider in providers:
        # The ancestors of a provider already found have been found as well.
        here: int | None = provider
        while here is not None and here not in found:
            found.add(here)
            here = parents.get(here)
    return found


def without_cycles(parents: Parents) -> dict[int, int | None]:
    """Return the parents, with providers of a cycle, and all below one, as roots: an odd database may have some.

    >>> without_cycles({1: None, 2: 1, 3: 4, 4: 3, 5: 3})
    {1: None, 2: 1, 3: None, 4: None, 5: None}
    """
    roots = true_roots(parents)
    return {provider: None if roots[provider] is None else parent for provider, parent in parents.items()}


def true_roots(parents: Parents) -> dict[int, int | None]:
    """Return the root of each provider, or None if its ancestry ends at an unknown one or in a cycle. O(providers)."""
    roots: dict[int, int | None] = {}
    for start in parents:
        path: list[int] = []
        on_path: set[int] = set()
        here: int | None = start
        while here is not None and here in parents and here not in roots and here not in on_path:
            path.append(here)
            on_path.add(here)
            here = parents[here]
        if here is None:
            root: int | None = path[-1] if path else None
        elif here in on_path:
            root = None
        else:
            root = roots.get(here)
        roots.update(dict.fromkeys(path, root))
    return roots


T = TypeVar("T")

Position = tuple[int | None, ...]
"""For each level, outermost first, the anchor of a provider's place; None if it lies in none."""


class Places(NamedTuple):
    """Where the providers of one tree lie.

    ``of`` maps providers to their places of all levels; it may omit those that lie in none, and contain others.
    ``levels`` has all places of each level, outermost first.
    """

    of: Mapping[int, int]
    levels: tuple[int, ...]

    def around(self, providers: Iterable[int]) -> int:
        """Return the places that any of these providers lies in."""
        return reduce(or_, [self.of.get(provider, 0) for provider in providers], 0)

    def touched(self, touched: int) -> tuple[int, ...]:
        """Count a set of places by level.

        >>> Places({}, (0b0011, 0b1100)).touched(0b0011)
        (2, 0)
        """
        return tuple([(touched & places).bit_count() for places in self.levels])

    def counts(self, touched: int) -> tuple[int, ...]:
        """Count the same way, but at least 1 for each level: what compactness is computed from.

        What touches no place of a level counts as compact as what touches one, so that hosts that do not model their
        NUMA nodes are not penalised.

        >>> Places({}, (0b0011, 0b1100)).counts(0b0111)
        (2, 1)
        """
        return tuple([max(1, (touched & places).bit_count()) for places in self.levels])


NOWHERE = Places({}, ())


def level_bits(traits: Collection[T], levels: Sequence[T | None]) -> int:
    """Return the levels of which a provider with these traits is an anchor, as bits, the outermost lowest.

    >>> level_bits({"NUMA", "AVX"}, ["SOCKET", "NUMA"])
    2
    """
    return sum([1 << number for number, trait in enumerate(levels) if trait in traits])


@dataclass(frozen=True, slots=True)
class Levels:
    """The levels of a request, outermost first: those of the planner file, then traits that the request names itself.

    ``traits`` has the trait of each; ``names`` what a request calls it.
    """

    names: tuple[str, ...]
    traits: tuple[str, ...]

    def named(self, level: str) -> str:
        """Return the name of a level that may be written as its trait."""
        return self.names[self.traits.index(level)] if level in self.traits else level


class Layout:
    """The places in some trees. At each level, a provider lies in the nearest place at or above it.

    Args:
        parents: the parent of each provider of interest, of each place, and of all their ancestors.
        level_bits: anchor -> the levels of its places as bits, the outermost lowest.
        root_of: place -> the root of its tree.
        levels: the number of levels.

    >>> layout = Layout({1: None, 2: 1, 3: 2, 4: 1}, {2: 0b1}, {2: 1}, levels=1)
    >>> layout.inside({2, 3, 4}), layout.masks, layout.levels
    ({3: 2}, {2: 1}, (1,))
    """

    def __init__(
        self, parents: Parents, level_bits: Mapping[int, int], root_of: Mapping[int, int], *, levels: int
    ) -> None:
        self._parents = parents
        self._level_bits = level_bits
        self._root_of = root_of
        self._levels = range(levels)
        self._outer = self._above(level_bits.keys())

    @cached_property
    def _sizes(self) -> Counter[int]:
        """Root -> the number of places in its tree."""
        return Counter(self._root_of.values())

    @cached_property
    def _shifts(self) -> range:
        """The bit shifts of places: the n-th place of a tree owns the n-th bit of each level."""
        levels = len(self._levels)
        return range(0, levels * max(self._sizes.values(), default=0), levels or 1)

    @cached_property
    def levels(self) -> tuple[int, ...]:
        """All bits of each level's places, the same in every tree."""
        return tuple([sum([1 << shift + number for shift in self._shifts]) for number in self._levels])

    def _above(self, providers: Set[int]) -> dict[int, int]:
        """Return the innermost place above each provider that has one. O(providers and their ancestors)."""
        parents, places = self._parents, self._level_bits
        layers: list[Set[int]] = [providers]
        is_any = False
        for _ in parents:  # no way up is longer, also where an odd database has a cycle
            above = {parent for parent in map(parents.get, layers[-1]) if parent is not None}
            if not above:
                break
            layers.append(above - places.keys())
            is_any |= len(layers[-1]) < len(above)
        found: dict[int, int] = {}
        # Mostly no place is met, and many thousands of providers need no second pass.
        for layer in reversed(layers) if is_any else ():
            for provider in layer:
                parent = parents.get(provider)
                if parent is not None and (parent in places or parent in found):
                    found[provider] = parent if parent in places else found[parent]
        return {provider: found[provider] for provider in providers if provider in found}

    @cached_property
    def masks(self) -> dict[int, int]:
        """Place -> the mask of it and the places it lies in."""
        bits = self._level_bits
        next_shift = {root: iter(self._shifts).__next__ for root in self._sizes}
        own = {place: bits[place] << next_shift[self._root_of[place]]() for place in sorted(bits)}
        if not self._outer:
            return own
        # A place replaces enclosing places of its own levels.
        kept = {
            of_place: ~sum([places for number, places in enumerate(self.levels) if of_place >> number & 1])
            for of_place in {*bits.values()}
        }
        masks: dict[int, int] = {}
        for place in self._outermost_first():
            outer = masks[self._outer[place]] if place in self._outer else 0
            masks[place] = own[place] | outer & kept[bits[place]]
        return masks

    @cached_property
    def _positions(self) -> dict[int, Position]:
        """Place -> the position of whatever is in it."""
        nowhere: Position = (None,) * len(self._levels)
        all_bits = {*self._level_bits.values()}
        levels_of = {bits: [level for level in self._levels if bits >> level & 1] for bits in all_bits}
        positions: dict[int, Position] = {}
        for place in self._outermost_first():
            found = positions[self._outer[place]] if place in self._outer else nowhere
            for level in levels_of[self._level_bits[place]]:
                found = (*found[:level], place, *found[level + 1 :])
            positions[place] = found
        return positions

    def _outermost_first(self) -> Iterator[int]:
        """Yield every place after the one that encloses it."""
        yielded = self._level_bits.keys() - self._outer.keys()
        yield from yielded
        waiting = [*self._outer]
        while waiting:
            following = [place for place in waiting if self._outer[place] in yielded]
            yield from following
            yielded.update(following)
            waiting = [place for place in waiting if place not in yielded]

    def inside(self, providers: Set[int]) -> dict[int, int]:
        """Return the innermost place above each provider that is not itself a place, where there is one."""
        return self._above({provider for provider in providers if provider not in self._level_bits})

    def masks_of(self, inside: Mapping[int, int]) -> dict[int, int]:
        """Return the masks of all places, and of providers inside them."""
        return self.masks | {provider: self.masks[place] for provider, place in inside.items()}

    def positions_of(self, providers: Set[int], inside: Mapping[int, int]) -> dict[int, Position]:
        """Return the positions of providers.

        ``inside`` has the innermost places of those that are not places themselves.

        >>> layout = Layout({1: None, 2: 1, 3: 2}, {2: 0b1}, {2: 1}, levels=2)
        >>> layout.positions_of({1, 3}, layout.inside({1, 3}))
        {1: (None, None), 3: (2, None)}
        """
        nowhere: Position = (None,) * len(self._levels)
        known = self._positions
        return {provider: known.get(inside.get(provider, provider), nowhere) for provider in sorted(providers)}

    def around(self, fits: Mapping[int, float], inside: Mapping[int, int]) -> dict[int, float]:
        """Return how much fits around each provider: in its innermost place and inside it, or else on itself.

        ``inside`` has the innermost places of those that are not places themselves.
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
                # An enclosing place of the same level is replaced by the inner one, and gets no part of it.
                if not self.masks[outer] & ~self.masks[inner]:
                    found[outer] += much
                outer = self._outer.get(outer)
        return found

    def trees_in_use(self, providers: Set[int], inside: Mapping[int, int]) -> set[int]:
        """Return the roots of the trees in which any of these providers lies in a place."""
        used = (providers & self._level_bits.keys()).union(inside.values())
        return {*map(self._root_of.__getitem__, used)}
