"""Demands as the search sees them: where each could go, and the order in which they are placed.

The order is made of what is asked and of where it fits, never of labels: what fits in the fewest places comes first,
then what asks for the most. Demands that are alike in everything but their labels follow each other in any order.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations

from placement.allocators.group.scorers import Phase
from placement.allocators.group.sites import Sites
from placement.allocators.group.tree import Demand

Form = tuple[object, ...]
"""All of a demand but the labels."""


@dataclass(slots=True)
class Need:
    """One demand.

    Args:
        demand: the demand.
        level: its level; "" of an outermost demand.
        phase: when it runs.
        amounts: what the location itself must offer.
        parts_as_given: the needs inside, in the order of the demand's parts.
        parts: the same in the order of the search.
        form: all but the labels.
        viable: the locations where it would fit if it were alone.
        total: the amounts that add up, by (level, resource), its parts included.
        size: how many demands it is made of, and the sum of all amounts.
    """

    demand: Demand
    level: str
    phase: Phase
    amounts: tuple[tuple[str, int], ...]
    parts_as_given: list["Need"]
    form: Form
    parts: list["Need"] = field(default_factory=list)
    viable: frozenset[int] = frozenset()
    total: Counter[tuple[str, str]] = field(default_factory=Counter)
    size: tuple[int, int] = (0, 0)

    @property
    def rank(self) -> tuple[object, ...]:
        """What needs beside each other are sorted by."""
        return len(self.viable), -self.size[0], -self.size[1], self.form

    @property
    def rank_of_container(self) -> tuple[object, ...]:
        """What the needs of containers are sorted by: running ones come first."""
        return self.phase is not Phase.RUNNING, self._scarcest(), *self.rank

    def _scarcest(self) -> int:
        """Return in how few places the most demanding part would fit."""
        return min([len(self.viable), *[part._scarcest() for part in self.parts_as_given]])


class Needs:
    """Makes needs of demands for one tree of locations."""

    def __init__(self, sites: Sites) -> None:
        self._sites = sites
        self._viable: dict[Form, frozenset[int]] = {}
        self._free = [sites.free(index) for index in range(len(sites.all))]

    def of(self, containers: Sequence[Demand]) -> list[Need]:
        """Return the needs of containers, in the order given.

        Raises:
            ValueError: an amount is negative.
        """
        return [self._need(demand, phase=demand.phase, level="") for demand in containers]

    def _need(self, demand: Demand, *, phase: Phase, level: str) -> Need:
        if any([amount < 0 for amount in demand.amounts.values()]):
            raise ValueError(f"Demand {demand.label!r} asks for a negative amount.")
        parts = [self._need(part, phase=phase, level=part.level) for part in demand.parts]
        amounts = tuple(sorted(demand.amounts.items()))
        pin = () if demand.pinned is None else (demand.pinned,)
        form = (level, amounts, tuple(sorted([part.form for part in parts])), pin, phase.value)
        need = Need(demand, level, phase, amounts, parts, form)
        self._measure(need)
        need.viable = self._viable_sites(need)
        need.parts = sorted(parts, key=lambda part: part.rank)
        return need

    def _measure(self, need: Need) -> None:
        for part in need.parts_as_given:
            need.total.update(part.total)
        need.total.update({(need.level, base): amount for base, amount in need.amounts})
        parts = [part.size for part in need.parts_as_given]
        amount = sum([amount for _base, amount in need.amounts])
        need.size = 1 + sum([count for count, _amount in parts]), amount + sum([amount for _count, amount in parts])

    def _viable_sites(self, need: Need) -> frozenset[int]:
        known = self._viable.get(need.form)
        if known is None:
            places = self._sites.below(0, need.level) if need.level else [0]
            known = frozenset([site for site in places if self._could_serve(need, site)])
            self._viable[need.form] = known
        return known

    def _could_serve(self, need: Need, site: int) -> bool:
        place = self._sites.all[site]
        if need.demand.pinned is not None and need.demand.pinned != place.path:
            return False
        if not all([self._fits(site, base, amount, need.phase) for base, amount in need.amounts]):
            return False
        if not all([any([site < inner < place.end for inner in part.viable]) for part in need.parts_as_given]):
            return False
        return self.has_room(site, need.total)

    def _fits(self, site: int, base: str, amount: int, phase: Phase) -> bool:
        cell = self._sites.all[site].cells.get(base)
        if cell is None:
            return False
        if not cell.scorer.diminishing:
            return True
        return cell.scorer.judge(cell.allocatable, cell.used, (amount,), phase).fits

    def has_room(self, site: int, total: Counter[tuple[str, str]]) -> bool:
        """Tell whether the sums of what is free in a location and inside it could be enough.

        Resources that do not add up have no such sum; whether they fit is for their scorers to say.
        """
        free = self._free[site]
        return all([amount <= free[key] for key, amount in total.items() if amount and key in free])

    def exclude_each_other(self, needs: Sequence[Need]) -> bool:
        """Tell whether no two of some needs could ever be served by one location; False if that is not sure."""
        kinds: dict[Form, list[Need]] = {}
        for need in needs:
            kinds.setdefault(need.form, []).append(need)
        # Two of a kind stand for all pairs of it.
        some = [need for alike in kinds.values() for need in alike[:2]]
        return all([self._are_apart(one, other) for one, other in combinations(some, 2) if one.level == other.level])

    def _are_apart(self, one: Need, other: Need) -> bool:
        both = one.total + other.total
        return not any([self.has_room(site, both) for site in one.viable & other.viable])
