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
from typing import NamedTuple

from placement.allocators.budget import Budget
from placement.candidates.compose.device_parts import Part
from placement.candidates.compose.rival_room import ProviderRoom, RivalPart, RivalRoom, Rooms
from placement.candidates.useful_room import useful_room
from placement.domain.planner_request import PlannerRequest
from placement.domain.search_plan import Plan
from placement.domain.tree import Tree

_RoomById = tuple[int, ProviderRoom]
"""The id of a provider, and its room."""

CardOf = Callable[[int], int]
"""Returns the id of the card that a virtual function is on."""


class _Division(NamedTuple):
    """The parts of a request, divided into sets that are independent of each other.

    It depends only on how many providers each part wants, and on which parts single providers can serve together. So
    most trees are divided alike.

    Args:
        rivals: the sets; no parts of different sets are rivals. A part alone that any providers will do for is left
            out.
        of_parts: for the parts that a provider can serve, as bits: the index of each set with any of them, and these.
    """

    rivals: Sequence[RivalRoom]
    of_parts: Mapping[int, Sequence[tuple[int, int]]]


def only_room_decides(request: PlannerRequest, plan: Plan) -> bool:
    """Tell whether a tree serves a request as soon as it has room for all parts, in the places of ``CommonPlaces``."""
    if any([rule.required for rule in request.affinity]):
        return False
    if request.same_subtree or request.exclusive or plan.trait_sets:
        return False
    return not any([one.per_subtree for one in request.groups])


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
        self._useful = useful_room(plan)
        self._divisions: dict[tuple[frozenset[int], tuple[int, ...]], _Division] = {}
        self._rival_rooms: dict[tuple[int, tuple[int, ...]], RivalRoom] = {}

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
        served: dict[int, int] = defaultdict(int)
        for part, (row, _count) in enumerate(wanted):
            bit = 1 << part
            for provider in row:
                served[provider] |= bit
        division = self._divided(frozenset(served.values()), tuple([count for _row, count in wanted]))
        verdict: bool | None = True
        for rivals, room in zip(division.rivals, self._room(tree, served, division), strict=True):
            found = rivals.suffices(_on_cards(room, card_of if rivals.minds_cards else None), budget)
            if found is False:
                return False
            if found is None:
                verdict = None
        return verdict

    def _rivals_of(self, part: int) -> int:
        """Return the parts, as bits, that a part competes with on a provider that can serve both; itself included."""
        of_classes = [not amounts.keys().isdisjoint(self._amounts[part]) for amounts in self._amounts]
        is_rival = [(a and self._apart[part]) or of for a, of in zip(self._apart, of_classes, strict=True)]
        return sum([1 << other for other, is_one in enumerate(is_rival) if is_one]) | 1 << part

    def _divided(self, together: frozenset[int], counts: tuple[int, ...]) -> _Division:
        """Divide the parts.

        Args:
            together: the combinations of parts, as bits, that any provider can serve.
            counts: how many providers each part wants.
        """
        known = self._divisions.get((together, counts))
        if known is None:
            sets = [(parts, self._rival_room(parts, counts)) for parts in self._rivals_among(together)]
            competing = [(parts, room) for parts, room in sets if not room.is_boundless]
            of_parts = {
                parts: [(number, parts & of) for number, (of, _room) in enumerate(competing) if parts & of]
                for parts in together
            }
            known = self._divisions[together, counts] = _Division([room for _parts, room in competing], of_parts)
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

    def _room(self, tree: Tree, served: Mapping[int, int], division: _Division) -> list[list[_RoomById]]:
        """Return for each set of rivals the providers that can serve any of them, with the room of each.

        Args:
            tree: the tree.
            served: the parts, as bits, that each provider can serve.
            division: the sets.
        """
        room, useful = tree.room, self._useful
        found: list[list[_RoomById]] = [[] for _ in division.rivals]
        for provider, of in served.items():
            for number, parts in division.of_parts[of]:
                names = division.rivals[number].names
                left = tuple([useful[name][room.get((provider, name), inf)] for name in names])
                found[number].append((provider, (parts, left)))
        return found

    def _rival_room(self, parts: int, counts: Sequence[int]) -> RivalRoom:
        """Return the parts that bits stand for as rivals, of which each wants this many providers."""
        members = [*_members(parts)]
        asked = parts, tuple([counts[number] for number in members])
        known = self._rival_rooms.get(asked)
        if known is None:
            names = sorted({name for number in members for name in self._amounts[number]})
            rivals = [
                RivalPart(
                    number=number,
                    wanted=counts[number],
                    amounts=tuple([self._amounts[number].get(name, 0) for name in names]),
                    apart=self._apart[number],
                    by_card=self._by_card[number],
                )
                for number in members
            ]
            known = self._rival_rooms[asked] = RivalRoom(rivals, names)
        return known


def _contended(part: Part, plan: Plan) -> Mapping[str, int]:
    return {name: amount for name, amount in part.slot.resources if name in plan.contended}


def _on_cards(room: Sequence[_RoomById], card_of: CardOf | None) -> Rooms:
    """Return the room by card; without ``card_of`` each provider is on a card of its own."""
    if card_of is None:
        return tuple(sorted([(of_provider,) for _provider, of_provider in room]))
    cards: dict[int, list[ProviderRoom]] = defaultdict(list)
    for provider, of_provider in room:
        cards[card_of(provider)].append(of_provider)
    return tuple(sorted([tuple(sorted(card)) for card in cards.values()]))


def _members(parts: int) -> Iterator[int]:
    """Yield the parts that bits stand for, in order."""
    return (part for part in range(parts.bit_length()) if parts >> part & 1)
