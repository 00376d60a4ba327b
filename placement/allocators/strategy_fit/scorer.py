"""The strategy fit compiled for one request: the same results for one node or for columns of thousands.

Everything that depends only on the profile and the request is computed once: the terms of its scores, with names
matched and weights as integers. Per node, there remain integer arithmetic and one final division, so that a score is
the float nearest to the exact value: equally good nodes get the same float, whatever the order of their classes.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from math import lcm, prod
from operator import or_
from types import MappingProxyType
from typing import Any, NamedTuple

from placement.allocators.entries import WILDCARD, Number, best_match, exact
from placement.allocators.strategy_fit.profile import MAX_NODE_SCORE, Fit, Profile, Proportional, Sra

NodeAmounts = Mapping[str, int]

_NOTHING: NodeAmounts = MappingProxyType({})


class ScoredNode(NamedTuple):
    """A node's capacity and usage by resource class."""

    allocatable: NodeAmounts
    used: NodeAmounts = _NOTHING


@dataclass(frozen=True, slots=True)
class OwnPart:
    """How much of a request a node provides itself where others may provide the rest, or bounds on that.

    Args:
        limit: the most that it provides of each class.
        least: the least that it provides of each class, if it provides any.
        is_certain: whether it provides exactly that; otherwise its score is an upper bound.
    """

    limit: NodeAmounts
    least: NodeAmounts
    is_certain: bool = False

    @classmethod
    def exactly(cls, amounts: NodeAmounts) -> "OwnPart":
        """Return the part of a node that provides exactly this."""
        demand = asked_amounts(amounts)
        return cls(demand, demand, is_certain=True)

    def in_any_case(self, name: str) -> int:
        """Return how much of a class the node is certain to provide."""
        return self.least.get(name, 0) if self.is_certain else 0


def asked_amounts(requested: NodeAmounts) -> dict[str, int]:
    """Drop amounts of 0, which ask for nothing; ValueError if one is negative."""
    for name, amount in requested.items():
        if amount < 0:
            raise ValueError(f"{name}: a request cannot be negative, but is {amount}")
    return {name: amount for name, amount in requested.items() if amount}


class _FitTerm(NamedTuple):
    """A requested class that is configured, and how much of it the node provides; MostAllocated ``packs``."""

    name: str
    weight: int
    least: int
    limit: int
    packs: bool


class _ScarceTerm(NamedTuple):
    """A scarce entry: counts against a node that has one of these classes. ``names`` may be empty."""

    names: tuple[str, ...]
    weight: int


class _Reserve(NamedTuple):
    """Idle secondary - asked secondary >= max(0, idle primary - asked primary) x ratio, where there is a primary."""

    primary: str
    primary_amount: int
    secondary: str
    secondary_amount: int
    ratio: Fraction


def _fit_terms(fit: Fit, demand: NodeAmounts, part: OwnPart) -> list[_FitTerm]:
    matches = [(name, best_match(fit.resources, name)) for name in demand]
    configured = [(name, fit.resources[pattern]) for name, pattern in matches if pattern is not None]
    weights = _whole([preference.weight for _name, preference in configured])
    return [
        _FitTerm(name, weight, part.least.get(name, 0), part.limit.get(name, 0), preference.type == "MostAllocated")
        for (name, preference), weight in zip(configured, weights, strict=True)
        if weight
    ]


def _scarce_terms(sra: Sra, part: OwnPart, universe: set[str]) -> list[_ScarceTerm]:
    members = _members(sra.resources, universe)
    spared = part.limit if sra.mode == "unneeded" else {}
    return [
        _ScarceTerm(tuple([name for name in members[pattern] if name not in spared]), weight)
        for pattern, weight in zip(sra.resources, _whole(list(sra.resources.values())), strict=True)
    ]


def _reserves(policy: Proportional, part: OwnPart, universe: set[str]) -> list[_Reserve]:
    members = _members(policy.reserve, universe)
    if policy.exempt == "all" and any([name in part.limit for names in members.values() for name in names]):
        return []
    reserves = [
        _Reserve(primary, part.limit.get(primary, 0), secondary, part.in_any_case(secondary), exact(units))
        for pattern, secondaries in policy.reserve.items()
        for primary in members[pattern]
        for secondary, units in secondaries.items()
    ]
    # A request that takes no more than the share of the units that it asks for is exempt.
    return [
        reserve
        for reserve in reserves
        if not (reserve.primary_amount and reserve.secondary_amount <= reserve.primary_amount * reserve.ratio)
    ]


def _members(patterns: Mapping[str, object], universe: set[str]) -> dict[str, list[str]]:
    """Return the classes that each entry matches best."""
    members: dict[str, list[str]] = {pattern: [] for pattern in patterns}
    for name in sorted(universe | {pattern for pattern in patterns if not pattern.endswith(WILDCARD)}):
        pattern = best_match(patterns, name)
        if pattern is not None:
            members[pattern].append(name)
    return members


def _whole(weights: list[Number]) -> list[int]:
    """Scale weights to integers."""
    fractions = [exact(weight) for weight in weights]
    scale = lcm(*[weight.denominator for weight in fractions])
    return [int(weight * scale) for weight in fractions]


class _ScoreFactors(NamedTuple):
    """How a score is put together: the mean's fraction and the avoided weight, as integers over one denominator."""

    mean: int
    avoided: int
    common: int


class NodeScorer:
    """A profile and a request, compiled to score many nodes; see ``scorer_for``.

    Methods take the capacity and the usage of ``classes``, in this order, 0 where a node lacks one: integers, or
    columns of them. Whether a node can serve the request at all has to be checked separately.
    """

    def __init__(
        self, profile: Profile, requested: NodeAmounts, node_classes: Iterable[str], own: OwnPart | None
    ) -> None:
        demand = asked_amounts(requested)
        universe, part = {*node_classes, *demand}, own or OwnPart.exactly(demand)
        fit = profile.fit if profile.fit and profile.fit.weight else None
        sra = profile.sra if profile.sra and profile.sra.weight else None
        self._is_alone = own is None
        self._fit = _fit_terms(fit, demand, part) if fit else []
        self._scarce = _scarce_terms(sra, part, universe) if sra else []
        self._needed = [*filter(part.in_any_case, part.limit)] if sra and sra.mode == "upstream" else []
        """The classes without which a node gets 0 from sra."""
        self._reserves = _reserves(profile.proportional, part, universe) if profile.proportional else []
        of_scarce = [name for term in self._scarce for name in term.names]
        of_reserves = [name for reserve in self._reserves for name in (reserve.primary, reserve.secondary)]
        self.classes = tuple(sorted({*[term.name for term in self._fit], *of_scarce, *self._needed, *of_reserves}))
        self._all_scarce = sum([term.weight for term in self._scarce])
        per_mean = _per_unit(fit, sum([term.weight for term in self._fit]))
        per_avoided = _per_unit(sra, self._all_scarce)
        common = lcm(per_mean.denominator, per_avoided.denominator)
        self._factors = _ScoreFactors(int(per_mean * common), int(per_avoided * common), common)

    def score(self, allocatable: Sequence[Any], used: Sequence[Any]) -> Any:
        """Return the sum of the scores, from 0 to 100 times the sum of the policies' weights."""
        return self._weighed(allocatable, used, self._factors)

    def fit(self, allocatable: Sequence[Any], used: Sequence[Any]) -> Any:
        """Return the strategy fit alone; 0 if the profile has no such policy."""
        return self._weighed(allocatable, used, self._factors._replace(avoided=0))

    def sra(self, allocatable: Sequence[Any], used: Sequence[Any]) -> Any:
        """Return the score for scarce resources alone; 0 if the profile has no such policy."""
        return self._weighed(allocatable, used, self._factors._replace(mean=0))

    def keeps_proportion(self, allocatable: Sequence[Any], used: Sequence[Any]) -> Any:
        """Tell whether the node keeps its reserve for scarce resources."""
        keeps: Any = True
        capacity, usage = self._by_class(allocatable), self._by_class(used)
        for primary, primary_amount, secondary, secondary_amount, ratio in self._reserves:
            idle = capacity[primary] - usage[primary] - primary_amount
            idle_secondary = (capacity[secondary] - usage[secondary] - secondary_amount) * ratio.denominator
            keeps = keeps & ((capacity[primary] <= 0) | (idle_secondary >= idle * (idle > 0) * ratio.numerator))
        return keeps

    def largest(self, limits: Mapping[str, int]) -> int:
        """Return a bound on all integers that scores pass through, given one on the amounts of each class."""
        (mean, avoided, common), amount = self._factors, max(limits.values(), default=1)
        weight = sum([term.weight for term in self._fit]) * mean + self._all_scarce * avoided + common
        demand = max([term.limit + term.least for term in self._fit], default=0)
        reserves = [
            (2 * amount + primary_amount + secondary_amount) * max(ratio.as_integer_ratio())
            for _primary, primary_amount, _secondary, secondary_amount, ratio in self._reserves
        ]
        return max(prod([limits[term.name] for term in self._fit]) * weight, 2 * amount + demand, *reserves)

    def _by_class(self, column: Sequence[Any]) -> dict[str, Any]:
        return dict(zip(self.classes, column, strict=True))

    def _weighed(self, allocatable: Sequence[Any], used: Sequence[Any], factors: _ScoreFactors) -> Any:
        capacity = self._by_class(allocatable)
        numerator, denominator = self._mean(capacity, self._by_class(used))
        mean, avoided, common = factors
        # One division of two integers, hence rounded once, to the nearest float.
        return (numerator * mean + denominator * self._avoided(capacity) * avoided) / (denominator * common)

    def _mean(self, allocatable: Mapping[str, Any], used: Mapping[str, Any]) -> tuple[Any, Any]:
        """Return the sum of weight x ratio over the requested classes, as numerator and denominator."""
        numerator: Any = 0
        denominator: Any = 1
        has_room: Any = True
        for name, weight, least, limit, packs in self._fit:
            if not limit:
                continue
            capacity, after, full = allocatable[name], used[name] + least, used[name] + limit
            fits, is_present = after <= capacity, capacity > 0
            counting = full + (capacity - full) * (full > capacity) if packs else capacity - after
            counts = is_present & fits
            factor = (capacity - 1) * counts + 1
            numerator = numerator * factor + denominator * counting * (weight * counts)
            denominator = denominator * factor
            has_room = has_room & (fits | (capacity <= 0))
        return numerator * has_room if self._is_alone else numerator, denominator

    def _avoided(self, allocatable: Mapping[str, Any]) -> Any:
        """Return the weight of the scarce resources that do not count against a node."""
        spared: Any = self._all_scarce
        for names, weight in self._scarce:
            if names:
                spared = spared - weight * reduce(or_, [allocatable[name] > 0 for name in names])
        for name in self._needed:
            spared = spared * (allocatable[name] > 0)
        return spared


def _per_unit(policy: Fit | Sra | None, weight: int) -> Fraction:
    """Return the score per unit of weight; 0 if the policy or every weight is missing."""
    return MAX_NODE_SCORE * exact(policy.weight) / weight if policy and weight else Fraction()


def scorer_for(
    profile: Profile, requested: NodeAmounts, node_classes: Iterable[str] = (), own: OwnPart | None = None
) -> NodeScorer:
    """Compile a profile for a request.

    Args:
        profile: the policies.
        requested: resource class -> amount.
        node_classes: every class that nodes may have; needed where scarce or primary classes are given as a family.
        own: how much of the request a node provides itself where others may provide the rest: it is charged no more
            than that, and a class of which it provides nothing, or more than it has left, counts as one that it lacks.
            Where that is uncertain, the score is an upper bound. By default the node provides all, as in Volcano.

    Raises:
        ValueError: an amount is negative.

    >>> from placement.allocators.strategy_fit.profile import Fit, Preference, Sra
    >>> profile = Profile(fit=Fit({"VCPU": Preference("LeastAllocated")}), sra=Sra({"PGPU": 1}))
    >>> scorer = scorer_for(profile, {"VCPU": 4})
    >>> scorer.score((0, 16), (0, 0)), scorer.score((8, 16), (0, 0))
    (1750.0, 750.0)
    """
    return NodeScorer(profile, requested, node_classes, own)


MAX_COMPILED = 512
"""Scorers of a profile, some kilobytes each."""


class Scorers:
    """The scorers of one profile, each compiled once: a service gets the same few requests over and over."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._compiled: dict[Hashable, NodeScorer] = {}

    def scorer(self, requested: NodeAmounts, node_classes: AbstractSet[str], own: OwnPart) -> NodeScorer:
        """Return ``scorer_for`` a request; the arguments are the same."""
        limit, least = frozenset(own.limit.items()), frozenset(own.least.items())
        request = frozenset(requested.items()), node_classes, limit, least, own.is_certain
        scorer = self._compiled.get(request)
        if scorer is None:
            if len(self._compiled) >= MAX_COMPILED:
                self._compiled.clear()
            scorer = self._compiled[request] = scorer_for(self._profile, requested, node_classes, own)
        return scorer
