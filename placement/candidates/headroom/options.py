"""Which providers can serve the demands of a plan in trees of each form, whatever is in use."""

from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np

from placement.candidates.headroom.forms import CloudInForms, TreeForm
from placement.candidates.serving import Serving
from placement.cloud.providers import Ints
from placement.domain.search_plan import Demand, Plan

OptionRows = Sequence[Sequence[int]]
"""For each demand the providers that can serve it, by place in the form; pools are below 0."""


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
