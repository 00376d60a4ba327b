"""Kinds of hosts: either all hosts of a kind have a place for a request or none has, whichever devices are in use.

Far more hosts are of one kind than are alike in everything that decides which place is best (``host_sketches``): in a
busy cloud hardly two have the same in use.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Mapping
from math import inf

from placement.candidates.useful_room import useful_room
from placement.domain.ancestry import Parents, with_all_above
from placement.domain.planner_tree import NO_STOCKS, PlannerTree
from placement.domain.search_plan import Plan
from placement.domain.tree import Tree

KindOf = Callable[[Tree, PlannerTree], Hashable]


class RoomKinds:
    """Classifies hosts by what is known about them without their details.

    Where only the room of single providers decides, hosts of one kind can all serve the same, whatever the counts.

    Args:
        plan: what is asked for.
    """

    def __init__(self, plan: Plan) -> None:
        self._contended = plan.contended
        self._useful = useful_room(plan)

    def kind(self, tree: Tree) -> Hashable:
        """Return the kind of a host: for each provider what it can serve and its useful room, sorted."""
        room, useful, names = tree.room, self._useful, self._contended
        can = [
            (of, *[useful[name][room.get((provider, name), inf)] for name in names])
            for provider, of in _demands_served(tree).items()
        ]
        return tuple(sorted(can))


class HostKinds:
    """Numbers the kinds of hosts, for requests of groups that ask the same of each of their providers.

    Args:
        plan: what is asked for.
        lock_classes: the classes that say who holds a place.
        counts_use: whether it matters which providers are in use.
    """

    def __init__(self, plan: Plan, *, lock_classes: Collection[str], counts_use: bool) -> None:
        self._plan = plan
        self._lock_classes = sorted(lock_classes)
        self._counts_use = counts_use
        self._useful = useful_room(plan)
        self._numbers: dict[Hashable, int] = {}
        self._known: dict[int, tuple[Tree, PlannerTree, int]] = {}

    def kind(self, tree: Tree, details: PlannerTree) -> int:
        """Return the number of a host's kind: of what its providers can do, and how they are nested.

        Providers that neither serve anything nor have anything below them that does are left out: no rule looks there.
        """
        known = self._known.get(tree.root)
        if known is None or known[0] is not tree or known[1] is not details:
            # An explanation asks again about the very same objects.
            known = self._known[tree.root] = tree, details, self._kind(tree, details)
        return known[2]

    def _kind(self, tree: Tree, details: PlannerTree) -> int:
        serves = _demands_served(tree)
        parents = {provider: details.parents.get(provider) for provider in with_all_above(serves, details.parents)}
        can = self._can_do(tree, details, {provider: serves.get(provider, 0) for provider in parents})
        below: dict[int | None, list[int]] = defaultdict(list)
        for provider in reversed(_outermost_first(parents)):
            # Siblings differ only in what they and their subtrees can do, so their order does not matter.
            below[parents[provider]].append(self._number((can[provider], *sorted(below[provider]))))
        above = [parent for parent in below if parent not in parents]
        return self._number(tuple(sorted([kind for parent in above for kind in below[parent]])))

    def _number(self, form: Hashable) -> int:
        return self._numbers.setdefault(form, len(self._numbers))

    def _can_do(self, tree: Tree, details: PlannerTree, serves: Mapping[int, int]) -> dict[int, Hashable]:
        in_use = details.in_use() if self._counts_use else ()
        plan, foreign, stocks = self._plan, details.foreign_providers, details.stocks
        names, room, useful = plan.contended, tree.room, self._useful
        return {
            provider: (
                details.traits.get(provider),
                of,
                provider in in_use,
                provider in foreign,
                provider == details.root,
                tree.met.get(provider, 0) if plan.trait_sets else 0,
                # Only providers that serve something have room for it.
                *([useful[name][room.get((provider, name), inf)] for name in names] if of else ()),
                *[stocks.get(provider, NO_STOCKS).get(name) for name in self._lock_classes],
            )
            for provider, of in serves.items()
        }


def _demands_served(tree: Tree) -> dict[int, int]:
    """Return the demands that each provider can serve, as bits."""
    serves: dict[int, int] = defaultdict(int)
    for demand, row in enumerate(tree.options):
        for provider in row:
            serves[provider] |= 1 << demand
    return serves


def _outermost_first(parents: Parents) -> list[int]:
    """Return all providers, each after its parent."""
    inside: dict[int | None, list[int]] = defaultdict(list)
    for provider, parent in parents.items():
        inside[parent if parent in parents else None].append(provider)
    found = inside[None]
    for provider in found:  # Grows meanwhile.
        found += inside.get(provider, ())
    return found
