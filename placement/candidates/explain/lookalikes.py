"""Trees that differ only in the ids of their providers: what a search finds in one of them holds for all.

An explanation searches the same trees dozens of times, each time with another condition left out. Which of them look
alike is found out once, by all that any of these searches can see.
"""

from collections.abc import Callable, Hashable, Sequence
from functools import cached_property

from placement.candidates.explain.provider_kinds import ProviderKinds
from placement.candidates.explain.summed_room import SummedRoom
from placement.domain.search_plan import Plan

LookOf = Callable[[int], Hashable]
"""Returns the look of a tree, given its root: trees with equal looks differ only in ids."""


class Lookalikes:
    """The trees of one cloud by their looks.

    Args:
        kinds: the cloud.
        room: how much its providers have for several slots.
    """

    def __init__(self, kinds: ProviderKinds, room: SummedRoom) -> None:
        self.kinds = kinds
        self.room = room
        self._members: dict[int, Sequence[int]] = {}
        self._rooms: dict[str, _Looks] = {}

    def members(self, root: int) -> Sequence[int]:
        """Return the providers that may serve in a tree, ascending: those at the same place look alike."""
        found = self._members.get(root)
        if found is None:
            own, pools = self.kinds.own_by_tree.get(root, ()), self.kinds.shared_by_tree.get(root)
            found = self._members[root] = sorted({*own, *pools}) if pools else own
        return found

    def look_of(self, plan: Plan) -> LookOf:
        """Return what tells apart the trees that searches for a plan can tell apart."""
        looks = [self._of_kinds, *[self._of_room(name) for name in plan.contended]]
        if plan.request.same_subtree:
            looks.append(self._of_nesting)
        if not plan.request.combines_nested:
            looks.append(self._of_roots)
        return looks[0].__getitem__ if len(looks) == 1 else lambda root: tuple([look[root] for look in looks])

    @cached_property
    def _of_kinds(self) -> "_Looks":
        """By the kind of each member, and by whether it serves as the tree's own, by sharing with it, or as both."""
        kind_of, root_of, shared = self.kinds.kind_of, self.kinds.facts.root_of, self.kinds.shared_by_tree

        def look(root: int) -> Hashable:
            pools = shared.get(root)
            if not pools:
                return tuple([kind_of[one] for one in self.members(root)])
            return tuple([(kind_of[one], root_of[one] == root, one in pools) for one in self.members(root)])

        return _Looks(look)

    def _of_room(self, name: str) -> "_Looks":
        """By how much of a class each member has for several slots."""
        if name not in self._rooms:
            limits = self.room.useful_limits(name)
            self._rooms[name] = _Looks(lambda root: tuple([limits.get(one) for one in self.members(root)]))
        return self._rooms[name]

    @cached_property
    def _of_nesting(self) -> "_Looks":
        """By the nearest member above each."""
        parents = self.kinds.facts.parents

        def look(root: int) -> Hashable:
            places = {member: place for place, member in enumerate(self.members(root))}
            found = []
            for member in places:
                above = parents.get(member)
                while above is not None and above not in places:
                    above = parents.get(above)
                found.append(None if above is None else places[above])
            return tuple(found)

        return _Looks(look)

    @cached_property
    def _of_roots(self) -> "_Looks":
        """By which members are of the same tree."""
        root_of = self.kinds.facts.root_of

        def look(root: int) -> Hashable:
            numbers: dict[int, int] = {}
            return tuple([numbers.setdefault(root_of[one], len(numbers)) for one in self.members(root)])

        return _Looks(look)


class _Looks(dict[int, int]):
    """Numbers the looks of trees in one respect, on demand: numbers compare faster than what they stand for.

    Args:
        look: returns the look of a tree.
    """

    def __init__(self, look: Callable[[int], Hashable]) -> None:
        super().__init__()
        self._look = look
        self._numbers: dict[Hashable, int] = {}

    def __missing__(self, root: int) -> int:
        number = self[root] = self._numbers.setdefault(self._look(root), len(self._numbers))
        return number
