"""Kinds of hosts: of one kind all have a place for a request or none has, whichever of their devices are in use.

Far more hosts are of one kind than are alike in all that decides which place is the best (``alike_hosts``): in a cloud
at work hardly two have the same in use.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Mapping
from math import inf

from placement.candidates.useful_room import UsefulRoom
from placement.domain.planner_tree import PlannerTree
from placement.domain.search_plan import Plan
from placement.domain.tree import Tree

KindOf = Callable[[Tree, PlannerTree], Hashable]


class RoomKinds:
    """Tells kinds of hosts by what of them is known without their details.

    Of one kind all can serve what only the room of single providers decides, whatever is wanted how often.

    Args:
        plan: what is asked for.
    """

    def __init__(self, plan: Plan) -> None:
        self._contended = plan.contended
        self._useful = UsefulRoom(plan)

    def kind(self, tree: Tree) -> Hashable:
        """Return the kind of a host: for each provider what it can serve, and room for how much, in no order."""
        room, useful, names = tree.room, self._useful.of, self._contended
        can = [
            (of, *[useful(name, room.get((provider, name), inf)) for name in names])
            for provider, of in _demands_served(tree).items()
        ]
        return tuple(sorted(can))


class HostKinds:
    """Tells the kinds of hosts for requests of groups that ask the same of providers one by one.

    Args:
        plan: what is asked for.
        lock_classes: the classes that say who holds a place.
        counts_use: whether it matters which providers are in use.
    """

    def __init__(self, plan: Plan, *, lock_classes: Collection[str], counts_use: bool) -> None:
        self._plan = plan
        self._lock_classes = sorted(lock_classes)
        self._counts_use = counts_use
        self._useful = UsefulRoom(plan)
        self._numbers: dict[Hashable, int] = {}
        self._known: dict[int, tuple[Tree, PlannerTree, int]] = {}

    def kind(self, tree: Tree, details: PlannerTree) -> int:
        """Return a number for the kind of a host: for what its providers can do, and how they are nested."""
        known = self._known.get(tree.root)
        if known is None or known[0] is not tree or known[1] is not details:
            # An explanation asks again, of the very same.
            known = self._known[tree.root] = tree, details, self._kind(tree, details)
        return known[2]

    def _kind(self, tree: Tree, details: PlannerTree) -> int:
        can = self._can_do(tree, details)
        below: dict[int | None, list[int]] = defaultdict(list)
        parents = details.parents
        for provider in reversed(_outermost_first(parents)):
            # Providers beside each other are told apart by what they can do alone.
            below[parents[provider]].append(self._number((can[provider], *sorted(below[provider]))))
        above = [parent for parent in below if parent not in parents]
        return self._number(tuple(sorted([kind for parent in above for kind in below[parent]])))

    def _number(self, form: Hashable) -> int:
        return self._numbers.setdefault(form, len(self._numbers))

    def _can_do(self, tree: Tree, details: PlannerTree) -> dict[int, Hashable]:
        serves = _demands_served(tree)
        in_use = details.in_use() if self._counts_use else ()
        plan, foreign, stocks = self._plan, details.foreign_providers, details.stocks
        names = plan.contended
        return {
            provider: (
                details.traits.get(provider),
                of,
                provider in in_use,
                provider in foreign,
                provider == details.root,
                tree.met.get(provider, 0) if plan.trait_sets else 0,
                # Only who serves something has room for it, and only who has anything has locks.
                *([self._useful_room(name, tree.room.get((provider, name))) for name in names] if of else ()),
                *([stocks[provider].get(name) for name in self._lock_classes] if provider in stocks else ()),
            )
            for provider in details.parents
            for of in (serves.get(provider, 0),)
        }

    def _useful_room(self, name: str, room: float | None) -> float | None:
        return None if room is None else self._useful.of(name, room)


def _demands_served(tree: Tree) -> dict[int, int]:
    """Return for each provider the demands that it can serve, as bits."""
    serves: dict[int, int] = defaultdict(int)
    for demand, row in enumerate(tree.options):
        for provider in row:
            serves[provider] |= 1 << demand
    return serves


def _outermost_first(parents: Mapping[int, int | None]) -> list[int]:
    """Return all providers, each behind its parent."""
    inside: dict[int | None, list[int]] = defaultdict(list)
    for provider, parent in parents.items():
        inside[parent if parent in parents else None].append(provider)
    found = inside[None]
    for provider in found:  # It grows.
        found += inside.get(provider, ())
    return found
