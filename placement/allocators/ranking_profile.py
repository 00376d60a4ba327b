"""How an operator orders candidates: a ranking profile, and its strategy fit compiled for one request.

A profile names a set of policies for the host as a whole (``strategy_fit``), the weight of compactness, and how
fragmentation counts. *Compactness* is in how few NUMA nodes, and then in how few PCIe switches, the providers of a
placement lie. It is the group allocator's objective, but by counting alone, so that tens of thousands of candidates can
be sorted by it.

>>> one_node, two_switches, two_nodes = (1, 1), (1, 2), (2, 2)
>>> [round(compactness(counts), 1) for counts in (one_node, two_switches, two_nodes)]
[100.0, 66.7, 40.0]
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, reduce
from math import lcm, prod
from operator import or_
from types import MappingProxyType
from typing import Any, NamedTuple

from placement.allocators import WILDCARD, Number, best_match, check_number, exact
from placement.allocators.fragmentation.hosts import FragmentationSettings
from placement.allocators.strategy_fit import MAX_NODE_SCORE, Fit, Preference, Profile, Proportional, Sra

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


class NodeScorer:
    """A strategy and a request, compiled to score many nodes: integer arithmetic and one division remain for each.

    So a score is the float nearest to the exact value: equally good nodes get the same, whatever the order of their
    classes. Methods take the capacity and the usage of ``classes``, in this order, 0 where a node lacks one: integers,
    or columns of them. Whether a node can serve the request at all has to be checked separately.

    Args:
        requested: resource class -> amount, in units fine enough to be whole.
        node_classes: every class that nodes may have; needed where scarce or primary classes are given as a family.
        own: how much of the request a node provides itself where others may provide the rest: it is charged no more
            than that, and a class of which it provides nothing, or more than it has left, counts as one that it lacks.
            Where that is uncertain, the score is an upper bound. By default the node provides all, as in Volcano.

    Raises:
        ValueError: an amount is negative.

    >>> gpu_first = Profile(
    ...     fit=Fit({"PGPU": Preference("MostAllocated", 2), "VCPU": Preference("LeastAllocated", 1)}),
    ...     sra=Sra({"PGPU": 1}, weight=10),
    ... )
    >>> scorer = NodeScorer(gpu_first, {"VCPU": 4}, ["PGPU", "VCPU"])
    >>> scorer.classes, scorer.score((0, 32), (0, 0)), scorer.score((8, 16), (0, 0))
    (('PGPU', 'VCPU'), 1875.0, 750.0)
    """

    def __init__(
        self, profile: Profile, requested: NodeAmounts, node_classes: Iterable[str] = (), *, own: OwnPart | None = None
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
        mean = sum([term.weight for term in self._fit])
        # The score per unit of weight; 0 if the policy or every weight is missing.
        per_mean = MAX_NODE_SCORE * exact(fit.weight) / mean if fit and mean else Fraction()
        per_avoided = MAX_NODE_SCORE * exact(sra.weight) / self._all_scarce if sra and self._all_scarce else Fraction()
        common = lcm(per_mean.denominator, per_avoided.denominator)
        self._factors = int(per_mean * common), int(per_avoided * common), common
        """The factors of the mean and of the avoided weight in a score, and their common denominator."""

    def score(self, allocatable: Sequence[Any], used: Sequence[Any]) -> Any:
        """Return the sum of the scores, from 0 to 100 times the sum of the policies' weights."""
        return self._weighed(allocatable, used, self._factors)

    def fit(self, allocatable: Sequence[Any], used: Sequence[Any]) -> Any:
        """Return the strategy fit alone; 0 if the profile has no such policy."""
        return self._weighed(allocatable, used, (self._factors[0], 0, self._factors[2]))

    def sra(self, allocatable: Sequence[Any], used: Sequence[Any]) -> Any:
        """Return the score for scarce resources alone; 0 if the profile has no such policy."""
        return self._weighed(allocatable, used, (0, *self._factors[1:]))

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

    def _weighed(self, allocatable: Sequence[Any], used: Sequence[Any], factors: tuple[int, int, int]) -> Any:
        capacity = self._by_class(allocatable)
        numerator, denominator = self._mean(capacity, self._by_class(used))
        spared: Any = self._all_scarce  # The weight of the scarce resources that do not count against the node.
        for names, weight in self._scarce:
            if names:
                spared = spared - weight * reduce(or_, [capacity[name] > 0 for name in names])
        for name in self._needed:
            spared = spared * (capacity[name] > 0)
        mean, avoided, common = factors
        # One division of two integers, hence rounded once, to the nearest float.
        return (numerator * mean + denominator * spared * avoided) / (denominator * common)

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


MAX_COMPILED = 512
"""Scorers kept of a profile, some kilobytes each."""

MAX_COMPACTNESS = 100.0
"""The compactness of what lies in a single place of every level."""

Counts = tuple[int, ...]
"""By level, outermost first, the places at or above the providers taken: lexicographically smaller is more compact."""


def compactness(counts: Sequence[int]) -> float:
    """Score compactness from 0 (exclusive) to 100, independently of any other placement.

    The score is 100 / (count of the outermost level + how far the inner levels fall short of their best). It is higher
    if and only if the counts are lexicographically smaller: no saving in inner places makes up for an outer one.

    >>> compactness((2,)), compactness((1, 1, 1)), compactness(())
    (50.0, 100.0, 100.0)
    """
    share = 1.0
    for count in reversed(counts):
        share = 1.0 / (count + (1.0 - share))
    return MAX_COMPACTNESS * share


DEVICES = ("PGPU", "VGPU", "FPGA")
"""The standard classes that are devices."""

PACKED = (*DEVICES, "CUSTOM_GPU_*", "CUSTOM_PCI_10DE_*", "CUSTOM_PCI_1002_*")
"""What is packed without configuration; the last two are GPUs that nova passes through, NVIDIA's and AMD's."""


def _spread_beside_packed_devices() -> Profile:
    fit = Fit({**Fit().resources, **dict.fromkeys(PACKED, Preference("MostAllocated", weight=4))})
    # Each class of devices counts as much as the whole fit, so that others use hosts with devices last. A family would
    # cost each request a statement, which reads the names of all classes.
    return Profile(fit=fit, sra=Sra(dict.fromkeys(DEVICES, 1), weight=fit.weight * len(DEVICES)))


@dataclass(frozen=True)
class RankingProfile:
    """A named way to order candidates. The defaults apply where nothing is configured.

    Args:
        name: identifies it in requests and answers.
        strategy: the policies for the provider tree as a whole; by default VCPU and MEMORY_MB are spread, devices are
            packed, and other requests keep off trees that have devices.
        compactness: the weight of touching few places of each level (NUMA nodes, switches); 0 disables it.
        fragmentation: how placements are judged by what they do to devices; None disables it.

    Raises:
        InvalidEntry: the weight is negative or not a number.
    """

    name: str = "default"
    strategy: Profile = field(default_factory=_spread_beside_packed_devices)
    compactness: Number = 10
    fragmentation: FragmentationSettings | None = None
    _compiled: dict[Hashable, NodeScorer] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_number(self.compactness, "compactness")

    @cached_property
    def maximum(self) -> Fraction:
        """The upper bound of the weighted sum of all parts: 100 times the sum of the weights."""
        fragmentation = exact(self.fragmentation.weight) if self.fragmentation else 0
        return self.strategy.maximum + MAX_NODE_SCORE * (exact(self.compactness) + fragmentation)

    @property
    def filters(self) -> bool:
        """Whether trees that break a proportion are dropped rather than sorted last."""
        proportional = self.strategy.proportional
        return proportional is not None and proportional.mode == "filter"

    def scorer(self, requested: NodeAmounts, node_classes: AbstractSet[str], own: OwnPart) -> NodeScorer:
        """Return the strategy compiled for a request, once: a service gets the same few requests over and over."""
        limit, least = frozenset(own.limit.items()), frozenset(own.least.items())
        request = frozenset(requested.items()), node_classes, limit, least, own.is_certain
        scorer = self._compiled.get(request)
        if scorer is None:
            if len(self._compiled) >= MAX_COMPILED:
                self._compiled.clear()
            scorer = self._compiled[request] = NodeScorer(self.strategy, requested, node_classes, own=own)
        return scorer
