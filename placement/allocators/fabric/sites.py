"""The sites for a gang's members, and what is known about how many of them each holds."""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

Mix = tuple[int, ...]
"""The number of members of each kind."""


@dataclass(frozen=True, slots=True)
class Crew:
    """The members of a gang; those that want the same are of one kind.

    Args:
        members: the number of each kind.
        amounts: how much of each resource one member of each kind takes.
    """

    members: Mix
    amounts: Sequence[Sequence[int]]


class Site:
    """One site. The sites of a place are tried in order.

    Args:
        name: identifies the site.
        place: the place it lies in.
        free: an upper bound on what is free of each resource; None if unknown.
        part: at most one member may be in each part; None if there is no such rule.
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
        """Mixes that it is known not to hold, which rules out all larger ones."""

    def may_hold(self, mix: Mix, crew: Crew) -> bool:
        """Tell whether nothing known rules out a mix."""
        if self.part is not None and sum(mix) > 1:
            return False
        if any(all(map(int.__ge__, mix, refused)) for refused in self.refused):
            return False
        if self.free is None:
            return True
        taken = [sum(map(int.__mul__, mix, column)) for column in zip(*crew.amounts, strict=True)]
        return all(amount <= free for amount, free in zip(taken, self.free, strict=True))

    def most(self, kind: int, crew: Crew) -> int:
        """Return an upper bound on how many members of a kind it holds when alone."""
        most = crew.members[kind] if self.part is None else min(1, crew.members[kind])
        if self.free is not None:
            room = zip(crew.amounts[kind], self.free, strict=True)
            most = min([most, *[int(free // amount) for amount, free in room if amount]])
        for refused in self.refused:
            if not any([*refused[:kind], *refused[kind + 1 :]]):
                most = min(most, refused[kind] - 1)
        return max(0, most)


Posting = tuple[Site, Mix]
"""A site and who goes there."""


class Holds(Protocol):
    """The oracle for what sites hold."""

    def __call__(self, postings: Sequence[Posting]) -> Sequence[Posting]:
        """Return, for each site that does not hold its posting, a mix no larger than that which it does not hold.

        May add further sites.
        """


def largest_mixes(site: Site, crew: Crew, left: Mix) -> Iterator[Mix]:
    """Yield the maximal mixes of the remaining members that a site may hold.

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
