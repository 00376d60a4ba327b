"""Rules out trees before their details are read: by sums, by what is in use, by a search for single providers.

A search in one tree says nothing about others if no two are alike. These proofs look at all of them at once. A tree
that none of them rules out may still have no proposal.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from math import inf
from typing import NamedTuple

import numpy as np

from placement.candidates.compose.device_parts import Part
from placement.candidates.compose.slots import Memo, RequestBudget, SlotComposer
from placement.candidates.serving import Serving
from placement.cloud.providers import Flags, Ints, ProviderColumns
from placement.domain.planner_request import THE_DEVICE, PlannerRequest
from placement.domain.search_plan import plan_for
from placement.domain.tree import Tree


class _Portions(NamedTuple):
    """What a tree needs: a number of portions of a class, each of them of at least some amount.

    Args:
        number: how many portions.
        providers: how many providers serve them, those of different parts counted separately.
        loose: demand -> how many of the portions one provider can be asked for, besides those of other demands.
        isolated: the same for the demands of isolated groups, of which a provider serves only one.
    """

    resource_class: str
    amount: int
    number: int
    providers: int
    loose: Mapping[int, int]
    isolated: Mapping[int, int]

    def available(self, tree: Tree, members: int = 1) -> dict[int, float]:
        """Return how many portions each provider of a tree can give that many members at most."""
        numbers: dict[int, int] = {}
        for demand, number in self.isolated.items():
            for provider in tree.options[demand]:
                numbers[provider] = max(numbers.get(provider, 0), number)
        for demand, number in self.loose.items():
            for provider in tree.options[demand]:
                numbers[provider] = numbers.get(provider, 0) + number
        room, name, amount = tree.room, self.resource_class, self.amount
        unit = amount * members
        return {
            provider: min(number * unit, room.get((provider, name), inf)) // amount
            for provider, number in numbers.items()
        }


# Without it, eight members that want a GPU and its switch each are refused by 400 hosts in 800 ms of CPU, not 310.
class DeviceRoom:
    """What the parts of one request need in all; with ``isolate`` no two granular parts may be on one provider."""

    def __init__(self, parts: Sequence[Part], *, isolate: bool) -> None:
        self._isolate = isolate
        names = dict.fromkeys([name for part in parts for name, _amount in part.slot.resources])
        self._every = [portions for name in names for portions in self._portions_of(name, parts)]
        # A provider that has room for all of one member's is an option for it.
        self._of_several = [portions for portions in self._every if portions.providers > 1]

    def is_lacking(self, tree: Tree, *, members: int = 1) -> bool:
        """Tell whether a tree certainly has too little for all parts together, each of them once for each member."""
        needed = self._of_several if members == 1 else self._every
        return any(sum(portions.available(tree, members).values()) < portions.number * members for portions in needed)

    def _portions_of(self, name: str, parts: Sequence[Part]) -> Iterator[_Portions]:
        """Yield the portions needed of a class: for each amount asked for, those of at least it; and the sum of all."""
        asking = [part for part in parts if name in dict(part.slot.resources)]
        amounts = {dict(part.slot.resources)[name] for part in asking}
        for amount in sorted(amounts):
            no_less = [part for part in asking if dict(part.slot.resources)[name] >= amount]
            yield self._together(name, amount, [(part, 1) for part in no_less])
        if len(amounts) > 1:
            yield self._together(name, 1, [(part, dict(part.slot.resources)[name]) for part in asking])

    def _together(self, name: str, amount: int, asking: Sequence[tuple[Part, int]]) -> _Portions:
        """Return the portions, of at least some amount, that parts need together.

        ``asking`` has the parts, each with the number of portions that it takes of each of its providers.
        """
        isolated: dict[int, int] = {}
        loose: dict[int, int] = defaultdict(int)
        for part, number in asking:
            demand = part.slot.demand
            if self._isolate and part.slot.is_granular:
                isolated[demand] = max(isolated.get(demand, 0), number)
            else:
                loose[demand] += number
        counts = [1 if part.every is not None else part.group.count for part, _number in asking]
        total = sum([count * number for count, (_part, number) in zip(counts, asking, strict=True)])
        return _Portions(name, amount, number=total, providers=sum(counts), loose=loose, isolated=isolated)


class WantedFree(NamedTuple):
    """A number of different providers of a demand that must be free of use around them: the places of some levels.

    ``is_device`` tells whether each provider itself must be free, ``is_card`` what each is a virtual function of.
    """

    demand: int
    number: int
    levels: tuple[int, ...]
    is_device: bool
    is_card: bool


def wanted_free(parts: Iterable[Part], levels: Sequence[str]) -> Iterator[WantedFree]:
    """Yield what has to be free for those parts of a request that want a place to themselves."""
    for part in parts:
        if part.exclusive:
            is_device, is_function = THE_DEVICE in part.exclusive, part.group.device is not None
            yield WantedFree(
                part.slot.demand,
                1 if part.every is not None else part.group.count,
                tuple([levels.index(level) for level in part.exclusive if level != THE_DEVICE]),
                is_device and not is_function,
                is_device and is_function,
            )


# Without it, a GPU that wants its switch to itself on 400 busy hosts takes 450 ms of CPU instead of 210.
class PlacesInUse:
    """What is in use in a cloud."""

    def __init__(self, serving: Serving) -> None:
        self._serving = serving
        self._providers = serving.columns.providers

    @cached_property
    def is_in_use(self) -> Flags:
        """On which providers, or below which, anything is in use, by position."""
        used, columns = np.zeros(len(self._providers.ids), dtype=bool), self._serving.columns
        for stock in map(columns.stock, columns.class_ids):
            used[stock.at[stock.used > 0]] = True
        used[self._providers.with_ancestors(np.flatnonzero(used))] = True
        return used

    def without_free(
        self, groups: Sequence[WantedFree], trees: Sequence[Tree], levels: Sequence[int | None]
    ) -> set[int]:
        """Return the roots of trees that certainly have too few free providers. Sharing providers count as free."""
        if not trees or not groups:
            return set()
        at = self._providers.positions_of_trees([tree.root for tree in trees])
        lacking = set[int]()
        for group in groups:
            free = {*self._providers.ids[at[self._are_free(group, at, levels)]].tolist()}
            for tree in trees:
                options = tree.options[group.demand]
                if sum([provider in free or provider in tree.sharing for provider in options]) < group.number:
                    lacking.add(tree.root)
        return lacking

    def _are_free(self, group: WantedFree, at: Ints, levels: Sequence[int | None]) -> Flags:
        used = self.is_in_use
        free: Flags = ~used[at] if group.levels or group.is_device else np.ones(len(at), dtype=bool)
        if group.is_card:
            parents = self._providers.parent_positions[at]
            free &= ~used[np.where(parents >= 0, parents, at)]
        for trait_id in [levels[level] for level in group.levels]:
            if trait_id is None:
                return np.zeros(len(at), dtype=bool)
            places = self._providers.nearest(at, self._serving.sets.with_trait(trait_id))
            free &= (places >= 0) & ~used[places]
        return free


STEPS_OF_A_TREE = 1_000
STEPS = 200_000
"""The most steps for one request. Trees that are not ruled out by then are composed."""

MAX_FORMS = 10_000
"""How many forms of trees to remember: in a busy cloud there are thousands, each of them small."""


# Without it, three GPUs on a switch of two are refused by 400 hosts in 360 ms of CPU instead of 110.
class AnyChoice:
    """The choices of single providers for one request; how these are nested matters if groups are tied."""

    def __init__(self, request: PlannerRequest, providers: ProviderColumns) -> None:
        plan = plan_for(replace(request.plain, same_subtree=request.same_subtree))
        # A group with an open count may end up with no provider; several providers together may have more traits than
        # each of them; and hierarchical names have a plan of their own.
        is_open = any([group.per_subtree or group.everything for group in request.groups])
        has_several = any([group.count > 1 and not group.suffix for group in request.groups])
        may_add_traits = bool(plan.trait_sets) and has_several
        self._matters = not (request.paths or is_open or may_add_traits or plan.is_unconstrained)
        self._providers = providers if request.same_subtree else None
        self._budget = RequestBudget(per_tree=STEPS_OF_A_TREE, per_request=STEPS)
        self._composer = SlotComposer(plan, self._budget)
        self._lacking_by_form: Memo[bool] = Memo(MAX_FORMS)

    def lacking_in(self, trees: Sequence[Tree]) -> set[int]:
        """Return the roots of the trees that certainly have no choice."""
        if not trees or not self._matters:
            return set()
        if self._providers is not None:
            options = [(tree, provider) for tree in trees for row in tree.options for provider in row]
            roots = {tree.root_of.get(provider, tree.root) for tree, provider in options}
            roots |= {tree.root for tree in trees}
            parents = self._providers.parents_of(self._providers.positions_of_trees(roots))
            trees = [replace(tree, parents=parents) for tree in trees]
        return {tree.root for tree in trees if self._is_lacking(tree)}

    def _is_lacking(self, tree: Tree) -> bool:
        form = self._composer.form(tree)
        is_lacking = self._lacking_by_form.get(form)
        if is_lacking is None:
            self._budget.was_hit = False
            is_lacking = next(self._composer.searched(tree), None) is None and not self._budget.was_hit
            self._lacking_by_form.remember(form, is_lacking)
        return is_lacking
