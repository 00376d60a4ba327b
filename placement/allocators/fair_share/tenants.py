"""Those who hold something in one place, and what they may give back there so that a claim fits in."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter

from placement.allocators.entries import Number
from placement.allocators.fair_share.basket import Basket, Kind
from placement.allocators.fair_share.court import Court, queue_of
from placement.allocators.fair_share.offers import Held
from placement.allocators.fair_share.tree import way

Freed = tuple[tuple[int, str, int], ...]
"""What becomes free, sorted: the number of a provider, a class, and how much."""


@dataclass(frozen=True, slots=True)
class Tenant:
    """Something that may be given back as a whole.

    Args:
        held: what it is, and what of it counts.
        freed: all that becomes free by it, and where.
        inside: class -> how much of that lies in the place itself.
    """

    held: Held
    freed: Freed
    inside: Mapping[str, int]


class Tenants:
    """What the tenants of a place can give, in kinds: what is alike but for value and name.

    Args:
        court: who is entitled to what.
        tenants: those who may be asked.
        missing: class -> how much more of it has to be free in the place, as far as sums tell.
        values: value -> the same as a whole number.
        is_free: whether something may go whatever its owner is entitled to.
    """

    def __init__(
        self,
        court: Court,
        tenants: Iterable[Tenant],
        *,
        missing: Mapping[str, int],
        values: Mapping[Number, int],
        is_free: Callable[[Held], bool],
    ) -> None:
        limits = {need: amount for need, amount in court.needs.items() if need[0] != court.root}
        self._needed = (*missing.values(), *limits.values())
        alike = defaultdict[tuple[str, tuple[int, ...], bool, Freed], list[tuple[int, str, Tenant]]](list)
        for one in tenants:
            held = one.held
            takes = tuple([held.amounts.get(name, 0) for name in court.classes])
            alike[held.leaf, takes, not is_free(held), one.freed].append((values[held.value], held.name, one))
        self._alike = [sorted(of) for _sort, of in sorted(alike.items(), key=itemgetter(0))]
        purses = {path: None for leaf, *_rest in alike for path in court.keepers(leaf)}
        self._purses = [tuple(court.surplus(path).values()) for path in purses]
        numbers = {path: number for number, path in enumerate(purses)}
        self._kinds = []
        for (leaf, takes, is_bound, _freed), of in zip(sorted(alike), self._alike, strict=True):
            first = of[0][-1]
            gives = [first.inside.get(name, 0) for name in missing]
            if limits:
                gives += _towards(limits, first.held, court.root)
            worth = tuple([value for value, _name, _one in of])
            self._kinds.append(
                Kind(tuple(gives), takes, worth, tuple([numbers[path] for path in court.keepers(leaf)]), is_bound)
            )

    def nothing(self) -> Basket:
        """Return the empty choice."""
        return Basket(self._kinds, self._needed, self._purses)

    def chosen(self, counts: Sequence[int]) -> list[Tenant]:
        """Return so many of each kind, the least valuable."""
        return [one for count, of in zip(counts, self._alike, strict=True) for _value, _name, one in of[:count]]


def _towards(limits: Iterable[tuple[str, str]], held: Held, root: str) -> list[int]:
    """Return how much something gives towards the limits that are in the way."""
    around = {root, *way(queue_of(held.leaf))}
    return [held.amounts.get(name, 0) * (path in around) for path, name in limits]


def all_freed(tenants: Iterable[Tenant]) -> dict[int, Counter[str]]:
    """Return provider -> class -> how much becomes free if all these go."""
    freed: dict[int, Counter[str]] = defaultdict(Counter)
    for one in tenants:
        for provider, name, amount in one.freed:
            freed[provider][name] += amount
    return freed
