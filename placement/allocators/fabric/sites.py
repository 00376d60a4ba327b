"""The sites that members of a gang may go to, and what is known of how many of them a site holds."""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

Mix = tuple[int, ...]
"""How many members of each kind."""


@dataclass(frozen=True, slots=True)
class Crew:
    """Members who want the same are of one kind.

    Args:
        members: how many there are of each kind.
        amounts: what one member of each kind takes of each resource.
    """

    members: Mix
    amounts: Sequence[Sequence[int]]


class Site:
    """One site. Sites of a place are tried in their order.

    Args:
        name: what the site is called.
        place: what it lies in.
        free: how much it has of each resource, or more; None where that is not known.
        part: no two members may be in one part; None where they may.
    """

    __slots__ = ("free", "name", "part", "place", "refused")

    def __init__(
        self, name: int, place: Hashable, free: Sequence[float] | None = None, *, part: Hashable = None
    ) -> None:
        self.name = name
        self.place = place
        self.free = None if free is None else tuple(free)
        self.part = part
        self.refused: list[Mix] = []
        """Mixes that it does not hold; so it holds no larger ones."""

    def may_hold(self, mix: Mix, crew: Crew) -> bool:
        """Tell whether nothing is known that speaks against a mix."""
        if self.part is not None and sum(mix) > 1:
            return False
        if any(all(map(int.__ge__, mix, refused)) for refused in self.refused):
            return False
        if self.free is None:
            return True
        taken = [sum(map(int.__mul__, mix, column)) for column in zip(*crew.amounts, strict=True)]
        return all(amount <= free for amount, free in zip(taken, self.free, strict=True))

    def most(self, kind: int, crew: Crew) -> int:
        """Return how many members of a kind it may hold alone."""
        most = crew.members[kind] if self.part is None else min(1, crew.members[kind])
        if self.free is not None:
            room = zip(crew.amounts[kind], self.free, strict=True)
            most = min([most, *[int(free // amount) for amount, free in room if amount]])
        for refused in self.refused:
            if not any([*refused[:kind], *refused[kind + 1 :]]):
                most = min(most, refused[kind] - 1)
        return max(0, most)


Posting = tuple[Site, Mix]
"""Who goes to a site."""


class Holds(Protocol):
    """Knows what sites hold."""

    def __call__(self, postings: Sequence[Posting]) -> Sequence[Posting]:
        """Return for sites that do not hold what is posted there a mix that they do not hold, and that is no larger.

        It may name further sites.
        """


def largest_mixes(site: Site, crew: Crew, left: Mix) -> Iterator[Mix]:
    """Yield the mixes of those who are left that a site may hold, and that nobody could be added to.

    >>> site = Site(1, "here", [6])
    >>> list(largest_mixes(site, Crew((3, 2), [[3], [2]]), (3, 2)))
    [(2, 0), (1, 1), (0, 2)]
    """
    for mix in _mixes(site, crew, left, ()):
        larger = (_with_one_more(mix, kind) for kind, number in enumerate(mix) if number < left[kind])
        if any(mix) and not any(site.may_hold(one, crew) for one in larger):
            yield mix


def _mixes(site: Site, crew: Crew, left: Mix, chosen: Mix) -> Iterator[Mix]:
    kind = len(chosen)
    none = (0,) * (len(left) - kind - 1)
    for number in range(min(left[kind], site.most(kind, crew)), -1, -1):
        if site.may_hold((*chosen, number, *none), crew):
            if not none:
                yield (*chosen, number)
                return
            yield from _mixes(site, crew, left, (*chosen, number))


def _with_one_more(mix: Mix, kind: int) -> Mix:
    return (*mix[:kind], mix[kind] + 1, *mix[kind + 1 :])
