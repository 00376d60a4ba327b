"""From requests to the plans whose copies are counted, and which providers can serve these in trees of each form.

A group of several providers becomes as many slots.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from placement.candidates.headroom.forms import CloudInForms, TreeForm
from placement.candidates.serving import Serving
from placement.cloud.providers import Ints
from placement.domain.candidate_request import CandidateRequest
from placement.domain.planner_request import PlannerRequest
from placement.domain.search_plan import Demand, Plan, plan_for

CountedRequest = CandidateRequest | PlannerRequest


OptionRows = Sequence[Sequence[int]]
"""For each demand the providers that can serve it, by place in the form; pools are below 0."""


def counted_plan(request: CountedRequest) -> Plan:
    """Return the plan of a request, without its rules about places if it ``has_rules``."""
    if isinstance(request, CandidateRequest):
        return plan_for(request)
    plan = plan_for(replace(request.plain, same_subtree=request.same_subtree))
    counts = {one.suffix: 1 if one.everything or one.per_subtree else one.count for one in request.groups}
    return replace(plan, slots=tuple([slot for slot in plan.slots for _ in range(counts[slot.suffix])]))


def has_rules(request: CountedRequest) -> bool:
    """Tell whether a request says more than slots can, so that the copies of its plan are only an upper bound."""
    if isinstance(request, CandidateRequest):
        return False
    places = [rule.required for rule in request.affinity] + [rule.required for rule in request.within]
    devices = [one.everything or one.per_subtree or one.device is not None for one in request.groups]
    return any(places) or any(devices) or bool(request.exclusive or request.avoided_trees or request.paths)


def all_together(requests: Iterable[CountedRequest]) -> CandidateRequest:
    """Return a request that names everything the given requests name."""
    plain = [one.plain if isinstance(one, PlannerRequest) else one for one in requests]
    return CandidateRequest(
        groups=tuple([group for one in plain for group in one.groups]),
        root_required=frozenset[str]().union(*[one.root_required for one in plain]),
        root_forbidden=frozenset[str]().union(*[one.root_forbidden for one in plain]),
    )


class FormOptions:
    """Finds the options of one plan in the forms of a cloud: those in the first tree of each form."""

    def __init__(self, plan: Plan, cloud: CloudInForms) -> None:
        self._plan = plan
        self._cloud = cloud
        self._serving = Serving(plan, cloud.ids, columns=cloud.columns, sets=cloud.sets)

    def rows(self, number: int) -> OptionRows | None:
        """Return who can serve each demand; None if the tree itself must not, or if a demand has no provider."""
        rows = [of_forms[number] for of_forms in self._of_demands] if self._is_possible[number] else []
        return rows if rows and all(rows) else None

    def met(self, number: int, places: Iterable[int]) -> dict[int, int]:
        """Return which trait sets of the unsuffixed group each of some providers meets, as bits."""
        start = self._starts[number]
        at = {place: self._cloud.pools[place].position if place < 0 else start + place for place in places}
        sets = [self._serving.with_any_trait(any_of) for any_of in self._plan.trait_sets]
        return {
            place: sum([1 << index for index, flags in enumerate(sets) if flags[position]])
            for place, position in at.items()
        }

    @cached_property
    def _starts(self) -> list[int]:
        starts: list[int] = self._cloud.columns.providers.starts[self._cloud.first_trees].tolist()
        return starts

    @cached_property
    def _is_possible(self) -> list[bool]:
        trees = self._cloud.first_trees
        possible = self._serving.possible_trees if self._serving.is_possible else np.zeros(len(self._roots), dtype=bool)
        is_possible: list[bool] = [True] * len(trees) if possible is None else possible[trees].tolist()
        return is_possible

    @property
    def _roots(self) -> Ints:
        return self._cloud.columns.providers.roots

    @cached_property
    def _of_demands(self) -> list[list[list[int]]]:
        """By demand and form, who can serve."""
        return [self._of_forms(demand) for demand in self._plan.demands]

    def _of_forms(self, demand: Demand) -> list[list[int]]:
        providers, trees = self._cloud.columns.providers, self._cloud.first_trees
        at = self._serving.possible_providers(demand, self._positions)
        numbers = np.searchsorted(trees, providers.trees[at])
        rows: list[list[int]] = [[] for _ in trees]
        for number, place in zip(numbers.tolist(), (at - providers.starts[trees[numbers]]).tolist(), strict=True):
            rows[number].append(place)
        return self._with_pools(demand, rows) if self._cloud.pools else rows

    def _with_pools(self, demand: Demand, rows: list[list[int]]) -> list[list[int]]:
        """Add the pools that can serve. A sharing provider is one pool for all trees, including its own."""
        pools = self._pools_for(demand)

        def with_pools(form: TreeForm, row: Sequence[int]) -> list[int]:
            here = {pool.number for pool in form.pools if pool.number in pools}
            return sorted({form.own_pools.get(place, place) for place in row} | here)

        return [with_pools(of_form.form, row) for of_form, row in zip(self._cloud.forms, rows, strict=True)]

    def _pools_for(self, demand: Demand) -> set[int]:
        if demand.resources and demand.group.in_tree is not None and not demand.group.is_granular:
            return set()  # in_tree keeps the unsuffixed group inside the tree.
        number_at = {pool.position: number for number, pool in self._cloud.pools.items()}
        serving = self._serving.possible_providers(demand, np.array(sorted(number_at)), sharing=True)
        return {number_at[position] for position in serving.tolist()}

    @cached_property
    def _positions(self) -> Ints:
        """The positions of all providers of the first trees."""
        return self._cloud.columns.providers.positions_in(self._cloud.first_trees)
