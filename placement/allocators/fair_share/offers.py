"""What may be given back, sorted into kinds, and which of it is."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from heapq import nsmallest
from math import lcm
from typing import NamedTuple

from placement.allocators.entries import Number, exact
from placement.allocators.fair_share.court import Court, Parting, queue_of
from placement.allocators.fair_share.fewest import Kind, Purse, fewest
from placement.allocators.fair_share.tree import Amounts, way
from placement.allocators.natural_order import natural_key


@dataclass(frozen=True, slots=True)
class Held:
    """Something that can be given back, as a whole.

    Args:
        name: what it is called.
        leaf: who uses it.
        amounts: what becomes free.
        value: how much it is worth; the least valuable goes first.
    """

    name: str
    leaf: str
    amounts: Amounts
    value: Number = 0


@dataclass(frozen=True, slots=True)
class Giving:
    """What has to be given back.

    Args:
        feasible: whether the claimant fits afterwards.
        given_back: what is given back for that, nothing if it fits as it is; the least valuable first.
        lacking: how much of each class the claimant lacks as things are.
        complete: False if not all choices were looked at: then there may be a better answer, or one at all.
        partings: the levels that decided, for those who give; if nobody can, for all who were asked.
    """

    feasible: bool
    given_back: tuple[Held, ...] = ()
    lacking: Amounts = field(default_factory=dict)
    complete: bool = True
    partings: tuple[Parting, ...] = ()


class _Sort(NamedTuple):
    """What makes things the same for every purpose but their names and values."""

    queue: str
    keepers: tuple[str, ...]
    takes: tuple[int, ...]
    is_bound: bool


def _bound(_one: Held) -> bool:
    return False


def chosen(court: Court, held: Sequence[Held], *, is_free: Callable[[Held], bool] = _bound, steps: int) -> Giving:
    """Choose the fewest of these for a claim, of these the least valuable.

    Args:
        court: what is needed, and who is entitled to what.
        held: what there is to choose from; whoever is asked must be allowed to give.
        is_free: whether something may go whatever its owner is entitled to.
        steps: how many partial choices are looked at.
    """
    values, sorts = _values(held), _sorted(court, held, is_free)
    purses = {
        path: number for number, path in enumerate(dict.fromkeys([path for sort in sorts for path in sort.keepers]))
    }
    inside = {sort.queue: {court.root, *way(sort.queue)} for sort in sorts}
    kinds = []
    for sort, things in sorts.items():
        amounts = dict(zip(court.classes, sort.takes, strict=True))
        kinds.append(
            Kind(
                gives=tuple([amounts[name] * (path in inside[sort.queue]) for path, name in court.needs]),
                takes=sort.takes,
                values=tuple(sorted([values[thing.value] for thing in things])),
                purses=tuple([purses[path] for path in sort.keepers]),
                is_bound=sort.is_bound,
            )
        )
    room: list[Purse] = [tuple(court.entitlements.surplus(path).values()) for path in purses]
    found = fewest(kinds, tuple(court.needs.values()), room, steps=steps)
    counts = found.counts or ()
    given_back = [one for count, things in zip(counts, sorts.values(), strict=False) for one in _least(things, count)]
    given_back.sort(key=_dearness)
    return Giving(
        feasible=found.counts is not None,
        given_back=tuple(given_back),
        lacking=court.lacking,
        complete=found.complete,
        partings=court.partings([one.leaf for one in given_back or held]),
    )


def _values(held: Sequence[Held]) -> dict[Number, int]:
    """Return value -> the same as a whole number, in a unit in which all are."""
    values = {value: value if isinstance(value, int) else exact(value) for value in {one.value for one in held}}
    unit = lcm(*[value.denominator for value in values.values()])
    return {value: int(as_written * unit) for value, as_written in values.items()}


def _sorted(court: Court, held: Sequence[Held], is_free: Callable[[Held], bool]) -> dict[_Sort, list[Held]]:
    """Return what is alike, those first whose owners have most beyond what they are entitled to."""
    owners = {leaf: (queue_of(leaf), court.keepers(leaf)) for leaf in {one.leaf for one in held}}
    places = {owner: place for place, owner in enumerate(sorted(set(owners.values()), key=partial(_preference, court)))}
    found = defaultdict[_Sort, list[Held]](list)
    for one in held:
        takes = tuple([one.amounts.get(name, 0) for name in court.classes])
        if any(takes):
            found[_Sort(*owners[one.leaf], takes, not is_free(one))].append(one)
    return dict(sorted(found.items(), key=lambda item: (places[item[0][:2]], item[0])))


def _preference(court: Court, owner: tuple[str, tuple[str, ...]]) -> tuple[object, ...]:
    queue, keepers = owner
    surplus = sum(court.entitlements.surplus(keepers[0]).values()) if keepers else 0
    return -surplus, natural_key(queue), keepers


def _least(things: Sequence[Held], count: int) -> Iterator[Held]:
    """Yield the least valuable, of equals the first by name; names are only looked at where it matters."""
    if count:
        last = sorted([exact(one.value) for one in things])[count - 1]
        yield from nsmallest(count, [one for one in things if exact(one.value) <= last], key=_dearness)


def _dearness(one: Held) -> tuple[object, ...]:
    return exact(one.value), natural_key(one.leaf), natural_key(one.name)
