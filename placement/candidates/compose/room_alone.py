"""Whether a tree has room for parts of a request where no rule says what lies beside what: by numbers alone.

Hosts of a cloud at work hardly ever have the same in use in the same places. Where places do not matter, they have much
in common: so many GPUs are free, and so many NICs have room for a group, or for two. Parts that cannot take anything of
each other are looked at by themselves, for which still more hosts are alike.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from math import inf

from placement.allocators.budget import Budget
from placement.allocators.devices import Device, Group, Host, Request, allocate
from placement.candidates.compose.device_parts import Part
from placement.candidates.useful_room import UsefulRoom
from placement.domain.planner_request import PlannerRequest
from placement.domain.search_plan import Plan
from placement.domain.tree import Tree

_Rooms = tuple[tuple[int, tuple[float, ...]], ...]
"""For each provider, in ascending order, the parts that it can serve, as bits, and its room of each class."""


def only_room_decides(request: PlannerRequest, plan: Plan) -> bool:
    """Tell whether it is enough for a request that each part has its providers, wherever they are.

    Several virtual functions of a group have to be of different devices besides.
    """
    if any([rule.required for rule in request.within]) or any([rule.required for rule in request.affinity]):
        return False
    if request.same_subtree or request.exclusive or plan.trait_sets:
        return False
    return not any([one.per_subtree for one in request.groups])


class RoomAlone:
    """The parts of a request of which only room decides, and what was found in trees.

    Args:
        parts: the parts.
        plan: the plan of the request.
        isolate: whether those that are granular share no provider.
    """

    def __init__(self, parts: Sequence[Part], plan: Plan, *, isolate: bool) -> None:
        self._apart = [isolate and part.slot.is_granular for part in parts]
        self._amounts = [_contended(part, plan) for part in parts]
        self._rivals = list(map(self._rivals_of, range(len(parts))))
        self._useful = UsefulRoom(plan)
        self._known: dict[object, bool] = {}

    def serves(
        self, tree: Tree, options: Sequence[Sequence[int]], counts: Sequence[int], budget: Budget
    ) -> bool | None:
        """Tell whether a tree has room for all parts; None if the steps of a budget do not suffice to tell.

        Args:
            tree: the tree.
            options: the providers that can serve each part.
            counts: how many different ones each wants.
            budget: the steps that may be taken.
        """
        if any([len(row) < count for row, count in zip(options, counts, strict=True)]):
            return False
        serves: dict[int, int] = defaultdict(int)
        for part, row in enumerate(options):
            for provider in row:
                serves[provider] |= 1 << part
        verdicts = set()
        for parts in self._independent({*serves.values()}):
            rooms = self._rooms(tree, serves, parts)
            verdicts.add(self._has_room(parts, tuple([counts[part] for part in _members(parts)]), rooms, budget))
            if False in verdicts:
                return False
        return None if None in verdicts else True

    def _rivals_of(self, part: int) -> int:
        """Return the parts, as bits, that a part gets into the way of on a provider that can serve both."""
        of_classes = [not amounts.keys().isdisjoint(self._amounts[part]) for amounts in self._amounts]
        is_rival = [(a and self._apart[part]) or of for a, of in zip(self._apart, of_classes, strict=True)]
        return sum([1 << other for other, is_one in enumerate(is_rival) if is_one]) | 1 << part

    def _independent(self, served_together: set[int]) -> list[int]:
        """Return all parts in sets, as bits: no two of different sets are rivals on any provider."""
        sets: list[int] = []
        for together in served_together:
            for part in _members(together):
                linked = together & self._rivals[part]
                touched = [one for one in sets if one & linked]
                sets = [one for one in sets if not one & linked]
                sets.append(linked | sum(touched))
        return sorted(sets)

    def _rooms(self, tree: Tree, serves: Mapping[int, int], parts: int) -> _Rooms:
        names = sorted({name for part in _members(parts) for name in self._amounts[part]})
        room, useful = tree.room, self._useful.of
        return tuple(
            sorted(
                [
                    (of & parts, tuple([useful(name, room.get((provider, name), inf)) for name in names]))
                    for provider, of in serves.items()
                    if of & parts
                ]
            )
        )

    def _has_room(self, parts: int, counts: tuple[int, ...], rooms: _Rooms, budget: Budget) -> bool | None:
        known = self._known.get((parts, counts, rooms))
        if known is not None or budget.is_used_up:
            return known
        found = allocate(*self._problem(parts, counts, rooms), budget=budget, any_way=True)
        if not found.allocations and not found.complete:
            return None
        return self._known.setdefault((parts, counts, rooms), bool(found.allocations))

    def _problem(self, parts: int, counts: tuple[int, ...], rooms: _Rooms) -> tuple[Host, Request]:
        names = sorted({name for part in _members(parts) for name in self._amounts[part]})
        devices = [
            Device(str(number), (), dict(zip(names, room, strict=True))) for number, (_of, room) in enumerate(rooms)
        ]
        groups = [
            Group(
                label=str(part),
                options={str(number): 0 for number, (of, _room) in enumerate(rooms) if of >> part & 1},
                count=count,
                amounts=self._amounts[part],
                apart=self._apart[part],
            )
            for part, count in zip(_members(parts), counts, strict=True)
        ]
        return Host((), tuple(devices)), Request(groups=tuple(groups))


def _contended(part: Part, plan: Plan) -> Mapping[str, int]:
    return {name: amount for name, amount in part.slot.resources if name in plan.contended}


def _members(parts: int) -> Iterator[int]:
    """Yield the parts that bits stand for, in order."""
    return (part for part in range(parts.bit_length()) if parts >> part & 1)
