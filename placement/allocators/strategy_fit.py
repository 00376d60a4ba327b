"""The policies of the strategy fit, as an operator configures them: plain values, validated on construction.

The three policies of Volcano's ResourceStrategyFit: *fit* packs some resources and spreads others, *sra* keeps requests
off nodes that have scarce resources, *proportional* reserves other resources for idle scarce ones. A ``Profile`` says
which of them count and how much; ``ranking_profile`` computes the scores.

Numbers may be integers, floats or fractions; a float counts as written (0.1 is one tenth). InvalidEntry if a name,
number or word is invalid, or a mapping is empty.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType
from typing import Literal, TypeVar, get_args

from placement.allocators import WILDCARD, InvalidEntry, Number, best_match, by_resource_class, check_number, exact

Strategy = Literal["MostAllocated", "LeastAllocated"]
ScarceMode = Literal["unneeded", "upstream"]
Exemption = Literal["all", "own"]
Failing = Literal["last", "filter"]

V = TypeVar("V")

MAX_NODE_SCORE = 100
"""What a policy of weight 1 gives the best node."""


def _check_word(value: object, words: object, path: str) -> None:
    if value not in get_args(words):
        raise InvalidEntry((path,), " or ".join(get_args(words)), value)


def _frozen(entries: Mapping[str, V], *path: str) -> Mapping[str, V]:
    """Return an immutable copy of entries, keyed by the resource classes that their keys denote."""
    if not isinstance(entries, Mapping) or not entries:
        raise InvalidEntry(path, "a mapping of at least one resource class", entries)
    return MappingProxyType(by_resource_class(entries, *path))


@dataclass(frozen=True, slots=True)
class Preference:
    """How to use one class, or each class of a family.

    Args:
        type: ``MostAllocated`` packs (the fullest node is best), ``LeastAllocated`` spreads (the emptiest is best).
        weight: its weight in the mean over the classes of a request; 0 excludes a class, also from its family.
    """

    type: Strategy
    weight: Number = 1

    def __post_init__(self) -> None:
        _check_word(self.type, Strategy, "type")
        check_number(self.weight, "weight")


_DEFAULT_PREFERENCES = {"VCPU": Preference("LeastAllocated"), "MEMORY_MB": Preference("LeastAllocated")}


@dataclass(frozen=True, slots=True)
class Fit:
    """The strategy fit: packs some resources, spreads others.

    The score is the weighted mean, over the classes that are both requested and configured, of used'/allocatable
    (MostAllocated) or (allocatable - used')/allocatable (LeastAllocated), where used' = used + requested. It is 0 if
    any of these classes is short. A class that the node lacks contributes 0 and keeps its weight in the mean.

    Args:
        resources: class or family -> preference. By default VCPU and MEMORY_MB are spread, with equal weights.
        weight: scores range from 0 to 100 times this; 0 disables the policy.
    """

    resources: Mapping[str, Preference] = field(default_factory=_DEFAULT_PREFERENCES.copy)
    weight: Number = 10

    def __post_init__(self) -> None:
        check_number(self.weight, "weight")
        object.__setattr__(self, "resources", _frozen(self.resources, "resources"))
        for name, preference in self.resources.items():
            if not isinstance(preference, Preference):
                raise InvalidEntry(("resources", name), "a type and a weight", preference)


@dataclass(frozen=True, slots=True)
class Sra:
    """Scarce resource avoidance: keeps requests off nodes that have scarce resources.

    The score is the weight of the scarce resources that do not count against the node, relative to the weight of all.
    One counts if the node has it, in use or not, and the request does not ask for it.

    Args:
        resources: scarce class or family -> how scarce it is. A family counts once, whichever of its classes is there.
        weight: scores range from 0 to 100 times this; 0 disables the policy.
        mode: ``upstream`` is Volcano's formula, in which a scarce resource counts even against requests that need it,
            and a node that lacks anything requested gets 0.
    """

    resources: Mapping[str, Number]
    weight: Number = 10
    mode: ScarceMode = "unneeded"

    def __post_init__(self) -> None:
        check_number(self.weight, "weight")
        _check_word(self.mode, ScarceMode, "mode")
        object.__setattr__(self, "resources", _frozen(self.resources, "resources"))
        for name, weight in self.resources.items():
            check_number(weight, "resources", name)


@dataclass(frozen=True, slots=True)
class Proportional:
    """A reserve for scarce resources: some of other classes has to stay idle for each idle unit of a primary one.

    For each primary class that the node has: idle secondary - requested secondary >= idle primary x ratio, exactly.

    Args:
        reserve: primary class or family -> secondary class -> units of the secondary for each idle one of the primary.
            No class is reserved for itself.
        exempt: ``all`` exempts a request for any primary from everything, as Volcano does. ``own`` exempts it only
            while it takes no more than the share of the units that it asks for, and never from another's reserve.
        mode: what happens to nodes that fail: they come ``last``, or they are dropped (``filter``).
    """

    reserve: Mapping[str, Mapping[str, Number]]
    exempt: Exemption = "all"
    mode: Failing = "last"

    def __post_init__(self) -> None:
        _check_word(self.exempt, Exemption, "exempt")
        _check_word(self.mode, Failing, "mode")
        reserve = _frozen(self.reserve, "reserve")
        frozen = {primary: _frozen(units, "reserve", primary) for primary, units in reserve.items()}
        object.__setattr__(self, "reserve", MappingProxyType(frozen))
        for primary, units in frozen.items():
            for secondary, number in units.items():
                check_number(number, "reserve", primary, secondary)
                if secondary.endswith(WILDCARD) or best_match([primary], secondary):
                    raise InvalidEntry(("reserve", primary, secondary), "one other class, not a family", secondary)


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A set of policies, each optional; its name is kept elsewhere."""

    fit: Fit | None = None
    sra: Sra | None = None
    proportional: Proportional | None = None

    @property
    def maximum(self) -> Fraction:
        """The upper bound of the sum of scores: 100 times the sum of the policies' weights."""
        weights = [exact(policy.weight) for policy in (self.fit, self.sra) if policy is not None]
        return MAX_NODE_SCORE * sum(weights, Fraction())

    @property
    def names_families(self) -> bool:
        """Whether what a node has decides by family, so that a scorer has to know every class."""
        entries = [*(self.sra.resources if self.sra else ()), *(self.proportional.reserve if self.proportional else ())]
        return any([name.endswith(WILDCARD) for name in entries])
