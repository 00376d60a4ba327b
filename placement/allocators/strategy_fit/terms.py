"""A profile specialised for a request: the terms of its scores, with names matched and weights as integers."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import lcm

from placement.allocators.entries import Number, exact
from placement.allocators.patterns import WILDCARD, best_match
from placement.allocators.strategy_fit.profile import Fit, Profile, Proportional, Sra

NodeAmounts = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class OwnPart:
    """How much of a request a node provides itself where others may provide the rest, or bounds on that.

    Args:
        most: the most that it provides of each class.
        least: the least that it provides of each class, if it provides any.
        is_certain: whether it provides exactly that. Otherwise it may provide nothing of some classes, and its score is
            an upper bound.
    """

    most: NodeAmounts
    least: NodeAmounts
    is_certain: bool = False

    @classmethod
    def exactly(cls, amounts: NodeAmounts) -> "OwnPart":
        """Return the part of a node that provides exactly this."""
        given = asked_amounts(amounts)
        return cls(given, given, is_certain=True)

    def in_any_case(self, name: str) -> int:
        """Return how much of a class the node is certain to provide."""
        return self.least.get(name, 0) if self.is_certain else 0


@dataclass(frozen=True, slots=True)
class FitTerm:
    """A class that is both requested and configured, and how much of it the node provides, if any.

    ``packs`` is true for MostAllocated, false for LeastAllocated.
    """

    name: str
    weight: int
    least: int
    most: int
    packs: bool


@dataclass(frozen=True, slots=True)
class ScarceTerm:
    """A scarce entry: counts against a node that has one of these classes. ``names`` may be empty."""

    names: tuple[str, ...]
    weight: int


@dataclass(frozen=True, slots=True)
class Reserve:
    """Idle secondary - asked secondary >= max(0, idle primary - asked primary) x ratio, where there is a primary."""

    primary: str
    primary_amount: int
    secondary: str
    secondary_amount: int
    ratio: Fraction


@dataclass(frozen=True, slots=True)
class ScoringTerms:
    """The terms of a profile and a request. A node that lacks a ``needed`` class gets 0 from sra."""

    fit: tuple[FitTerm, ...]
    scarce: tuple[ScarceTerm, ...]
    needed: tuple[str, ...]
    reserves: tuple[Reserve, ...]

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes that any term uses, sorted."""
        fit = {term.name for term in self.fit}
        scarce = {name for term in self.scarce for name in term.names}
        reserves = {name for reserve in self.reserves for name in (reserve.primary, reserve.secondary)}
        return tuple(sorted({*fit, *scarce, *self.needed, *reserves}))


def asked_amounts(requested: NodeAmounts) -> dict[str, int]:
    """Drop amounts of 0, which ask for nothing.

    Raises:
        ValueError: an amount is negative.
    """
    for name, amount in requested.items():
        if amount < 0:
            raise ValueError(f"{name}: a request cannot be negative, but is {amount}")
    return {name: amount for name, amount in requested.items() if amount}


def terms_of(
    profile: Profile, requested: NodeAmounts, known: Iterable[str], own: OwnPart | None = None
) -> ScoringTerms:
    """Specialise a profile for a request, given that nodes have only ``known`` and named classes.

    ``own`` is what a node provides of the request itself, by default everything.
    """
    asked = asked_amounts(requested)
    universe = {*known, *asked}
    sra = profile.sra if profile.sra and profile.sra.weight else None
    part = own or OwnPart.exactly(asked)
    return ScoringTerms(
        fit=_fit_terms(profile.fit, asked, part) if profile.fit and profile.fit.weight else (),
        scarce=_scarce_terms(sra, part, universe) if sra else (),
        needed=tuple(filter(part.in_any_case, part.most)) if sra and sra.mode == "upstream" else (),
        reserves=_reserves(profile.proportional, part, universe) if profile.proportional else (),
    )


def _fit_terms(fit: Fit, asked: NodeAmounts, part: OwnPart) -> tuple[FitTerm, ...]:
    matches = [(name, best_match(fit.resources, name)) for name in asked]
    configured = [(name, fit.resources[pattern]) for name, pattern in matches if pattern is not None]
    weights = _whole([preference.weight for _name, preference in configured])
    return tuple(
        FitTerm(name, weight, part.least.get(name, 0), part.most.get(name, 0), preference.type == "MostAllocated")
        for (name, preference), weight in zip(configured, weights, strict=True)
        if weight
    )


def _scarce_terms(sra: Sra, part: OwnPart, universe: set[str]) -> tuple[ScarceTerm, ...]:
    members = _members(sra.resources, universe)
    weights = _whole(list(sra.resources.values()))
    spared = part.most if sra.mode == "unneeded" else {}
    return tuple(
        ScarceTerm(tuple(name for name in members[pattern] if name not in spared), weight)
        for pattern, weight in zip(sra.resources, weights, strict=True)
    )


def _reserves(policy: Proportional, part: OwnPart, universe: set[str]) -> tuple[Reserve, ...]:
    members = _members(policy.reserve, universe)
    if policy.exempt == "all" and any(name in part.most for names in members.values() for name in names):
        return ()
    reserves = (
        Reserve(primary, part.most.get(primary, 0), secondary, part.in_any_case(secondary), exact(units))
        for pattern, secondaries in policy.reserve.items()
        for primary in members[pattern]
        for secondary, units in secondaries.items()
    )
    return tuple(reserve for reserve in reserves if not _is_within_its_share(reserve))


def _is_within_its_share(reserve: Reserve) -> bool:
    return reserve.primary_amount > 0 and reserve.secondary_amount <= reserve.primary_amount * reserve.ratio


def _members(patterns: Mapping[str, object], universe: set[str]) -> dict[str, list[str]]:
    """Return the classes that each entry matches best."""
    members: dict[str, list[str]] = {pattern: [] for pattern in patterns}
    named = {pattern for pattern in patterns if not pattern.endswith(WILDCARD)}
    for name in sorted(universe | named):
        pattern = best_match(patterns, name)
        if pattern is not None:
            members[pattern].append(name)
    return members


def _whole(weights: list[Number]) -> list[int]:
    """Scale weights to integers."""
    fractions = [exact(weight) for weight in weights]
    scale = lcm(*[weight.denominator for weight in fractions])
    return [int(weight * scale) for weight in fractions]
