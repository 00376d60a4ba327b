"""Whether a tree has room for the parts of a request if no rule says what lies beside what.

In a busy cloud hardly two hosts have the same in use in the same places. But if places do not matter, all that counts
is how many providers have how much room: hosts with three free GPUs, and a NIC with room for one more port, are the
same, wherever these are. What was found out about one of them holds for all.

Parts that cannot take anything of each other, such as GPUs and ports, are looked at separately. Then all hosts with
three free GPUs are the same for the one, and all with such a NIC for the other.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import inf
from operator import ge, sub
from typing import NamedTuple

from placement.allocators.budget import Budget
from placement.allocators.devices import Device, Group, Host, Request, allocate
from placement.candidates.compose.device_parts import Part
from placement.candidates.useful_room import UsefulRoom
from placement.domain.planner_request import PlannerRequest
from placement.domain.search_plan import Plan
from placement.domain.tree import Tree

_ProviderRoom = tuple[int, tuple[float, ...]]
"""The parts that a provider can serve, as bits, and its room of each class."""

_RoomById = tuple[int, _ProviderRoom]
"""The id of a provider, and its room."""

_Rooms = tuple[tuple[_ProviderRoom, ...], ...]
"""The room of the providers on each card, sorted; where cards do not matter, each provider is on a card of its own."""

CardOf = Callable[[int], int]
"""Returns the id of the card that a virtual function is on."""


class _RivalParts(NamedTuple):
    """Parts that may take something of each other.

    Args:
        parts: the parts, as bits.
        members: the same, by number.
        names: the contended classes that they take.
        by_card: those whose providers have to be on different cards.
    """

    parts: int
    members: tuple[int, ...]
    names: tuple[str, ...]
    by_card: tuple[int, ...]


class _IndependentSets(NamedTuple):
    """The parts of a request, divided into sets that are independent of each other.

    It depends only on which parts single providers can serve, so most trees are divided alike.

    Args:
        sets: the sets; no parts of different sets are rivals. A part alone that any providers will do for is left out.
        of_parts: for the parts that a provider can serve, as bits: the index of each set with any of them, and these.
    """

    sets: Sequence[_RivalParts]
    of_parts: Mapping[int, Sequence[tuple[int, int]]]


def only_room_decides(request: PlannerRequest, plan: Plan) -> bool:
    """Tell whether a tree serves a request as soon as it has room for all parts, in the places of ``CommonPlaces``."""
    if any([rule.required for rule in request.affinity]):
        return False
    if request.same_subtree or request.exclusive or plan.trait_sets:
        return False
    return not any([one.per_subtree for one in request.groups])


class _Remaining:
    """What is left of a provider while parts take theirs."""

    __slots__ = ("card", "has_apart", "left", "parts")

    def __init__(self, card: int, parts: int, left: list[float]) -> None:
        self.card = card
        self.parts = parts
        self.left = left
        self.has_apart = False

    def fits(self, amounts: Sequence[int], *, apart: bool) -> bool:
        """Tell whether it has room for a part. No two parts that are ``apart`` may be on it."""
        return not (apart and self.has_apart) and all(map(ge, self.left, amounts))

    def take(self, amounts: Sequence[int], *, apart: bool) -> None:
        """Give a part what it asks for."""
        self.left = list(map(sub, self.left, amounts))
        self.has_apart |= apart

    def scarcity(self) -> tuple[int, float]:
        """Return a sort key: first comes what the fewest parts can use, and of that what has most left."""
        return self.parts.bit_count(), -sum(self.left)


class RoomAlone:
    """The parts of a request of which only room decides, and what was found in trees.

    Args:
        parts: the parts.
        plan: the plan of the request.
        isolate: whether no two granular parts may be on one provider.
    """

    def __init__(self, parts: Sequence[Part], plan: Plan, *, isolate: bool) -> None:
        self._apart = [isolate and part.slot.is_granular for part in parts]
        self._by_card = [part.group.device is not None for part in parts]
        self._amounts = [_contended(part, plan) for part in parts]
        self._rivals = list(map(self._rivals_of, range(len(parts))))
        self._useful = UsefulRoom(plan)
        self._known: dict[object, bool] = {}
        self._known_sets: dict[frozenset[int], _IndependentSets] = {}

    def serves(
        self,
        tree: Tree,
        wanted: Sequence[tuple[Sequence[int], int]],
        budget: Budget,
        *,
        card_of: CardOf | None = None,
    ) -> bool | None:
        """Tell whether a tree has room for all parts; None if the budget runs out first.

        Args:
            tree: the tree.
            wanted: the providers that can serve each part, and how many different ones it wants.
            budget: the steps that may be taken.
            card_of: needed if a part wants several virtual functions, which have to be on different cards.
        """
        if any([len(row) < count for row, count in wanted]):
            return False
        serves: dict[int, int] = defaultdict(int)
        for part, (row, _count) in enumerate(wanted):
            for provider in row:
                serves[provider] |= 1 << part
        independent = self._independent_sets(frozenset(serves.values()))
        verdicts = set()
        for rivals, room in zip(independent.sets, self._room(tree, serves, independent), strict=True):
            counts = tuple([wanted[part][1] for part in rivals.members])
            is_by_card = any([wanted[part][1] > 1 for part in rivals.by_card])
            rooms = _on_cards(room, card_of if is_by_card else None)
            verdicts.add(self._has_room(rivals, counts, rooms, budget))
            if False in verdicts:
                return False
        return None if None in verdicts else True

    def _rivals_of(self, part: int) -> int:
        """Return the parts, as bits, that a part competes with on a provider that can serve both; itself included."""
        of_classes = [not amounts.keys().isdisjoint(self._amounts[part]) for amounts in self._amounts]
        is_rival = [(a and self._apart[part]) or of for a, of in zip(self._apart, of_classes, strict=True)]
        return sum([1 << other for other, is_one in enumerate(is_rival) if is_one]) | 1 << part

    def _independent_sets(self, served_together: frozenset[int]) -> _IndependentSets:
        """Divide the parts, given the combinations of parts, as bits, that any provider can serve."""
        known = self._known_sets.get(served_together)
        if known is None:
            found = [self._set(parts) for parts in self._rivals_among(served_together)]
            sets = [one for one in found if len(one.members) > 1 or one.names or one.by_card]
            of_parts = {
                parts: [(number, parts & one.parts) for number, one in enumerate(sets) if parts & one.parts]
                for parts in served_together
            }
            known = self._known_sets[served_together] = _IndependentSets(sets, of_parts)
        return known

    def _rivals_among(self, served_together: frozenset[int]) -> list[int]:
        """Return all parts in sets, each as bits: no parts of different sets are rivals on any provider."""
        sets: list[int] = []
        for together in served_together:
            for part in _members(together):
                linked = together & self._rivals[part]
                touched = [one for one in sets if one & linked]
                sets = [one for one in sets if not one & linked]
                sets.append(linked | sum(touched))
        return sorted(sets)

    def _set(self, parts: int) -> _RivalParts:
        members = tuple(_members(parts))
        names = sorted({name for part in members for name in self._amounts[part]})
        return _RivalParts(parts, members, tuple(names), tuple([part for part in members if self._by_card[part]]))

    def _room(self, tree: Tree, serves: Mapping[int, int], independent: _IndependentSets) -> list[list[_RoomById]]:
        """Return for each set of rivals the providers that can serve any of them, with the room of each.

        ``serves`` has the parts, as bits, that each provider can serve.
        """
        room, useful = tree.room, self._useful.of
        found: list[list[_RoomById]] = [[] for _ in independent.sets]
        for provider, of in serves.items():
            for number, parts in independent.of_parts[of]:
                names = independent.sets[number].names
                left = tuple([useful(name, room.get((provider, name), inf)) for name in names])
                found[number].append((provider, (parts, left)))
        return found

    def _has_room(self, rivals: _RivalParts, counts: tuple[int, ...], rooms: _Rooms, budget: Budget) -> bool | None:
        asked = rivals.parts, counts, rooms
        known = self._known.get(asked)
        if known is not None or budget.is_used_up:
            return known
        if self._has_room_at_once(rivals, counts, rooms):
            return self._known.setdefault(asked, True)
        found = allocate(*self._problem(rivals, counts, rooms), budget=budget, any_way=True)
        if not found.allocations and not found.complete:
            return None
        return self._known.setdefault(asked, bool(found.allocations))

    def _has_room_at_once(self, rivals: _RivalParts, counts: tuple[int, ...], rooms: _Rooms) -> bool:
        """Tell whether all parts find room one after the other, the most demanding first, each where it hurts least.

        If so, that takes far fewer steps than a search. If not, there may be room all the same.
        """
        names = rivals.names
        providers = [_Remaining(card, of, list(room)) for card, on_card in enumerate(rooms) for of, room in on_card]
        wanted = sorted(zip(rivals.members, counts, strict=True), key=lambda one: -sum(self._amounts[one[0]].values()))
        for part, count in wanted:
            amounts, apart = [self._amounts[part].get(name, 0) for name in names], self._apart[part]
            fitting = [one for one in providers if one.parts >> part & 1 and one.fits(amounts, apart=apart)]
            if self._by_card[part]:
                fitting.sort(key=_Remaining.scarcity, reverse=True)  # Of each card, the last one stays.
                fitting = [*{one.card: one for one in fitting}.values()]
            if len(fitting) < count:
                return False
            for one in sorted(fitting, key=_Remaining.scarcity)[:count]:
                one.take(amounts, apart=apart)
        return True

    def _problem(self, rivals: _RivalParts, counts: tuple[int, ...], rooms: _Rooms) -> tuple[Host, Request]:
        names = rivals.names
        providers = [(card, of, room) for card, on_card in enumerate(rooms) for of, room in on_card]
        devices = [
            Device(str(number), (), dict(zip(names, room, strict=True)), card=f"card {card}")
            for number, (card, _of, room) in enumerate(providers)
        ]
        groups = [
            Group(
                label=str(part),
                options={str(number): 0 for number, (_card, of, _room) in enumerate(providers) if of >> part & 1},
                count=count,
                amounts=self._amounts[part],
                apart=self._apart[part],
                by_card=self._by_card[part],
            )
            for part, count in zip(rivals.members, counts, strict=True)
        ]
        return Host((), tuple(devices)), Request(groups=tuple(groups))


def _contended(part: Part, plan: Plan) -> Mapping[str, int]:
    return {name: amount for name, amount in part.slot.resources if name in plan.contended}


def _on_cards(room: Sequence[_RoomById], card_of: CardOf | None) -> _Rooms:
    """Return the room by card; without ``card_of`` each provider is on a card of its own."""
    if card_of is None:
        return tuple(sorted([(of_provider,) for _provider, of_provider in room]))
    cards: dict[int, list[_ProviderRoom]] = defaultdict(list)
    for provider, of_provider in room:
        cards[card_of(provider)].append(of_provider)
    return tuple(sorted([tuple(sorted(card)) for card in cards.values()]))


def _members(parts: int) -> Iterator[int]:
    """Yield the parts that bits stand for, in order."""
    return (part for part in range(parts.bit_length()) if parts >> part & 1)
