"""What an operator configures for the strategy fit: plain values, checked when they are made.

Numbers may be written as integers, floats or fractions; a float counts as it is written (0.1 is one tenth). Whoever
reads a file makes these objects from it and turns ``InvalidEntry.path`` into a line.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType
from typing import Literal, TypeVar, get_args

from placement.allocators.entries import InvalidEntry, Number, check_number, check_word, exact
from placement.allocators.patterns import WILDCARD, best_match, by_resource_class

Strategy = Literal["MostAllocated", "LeastAllocated"]
ScarceMode = Literal["unneeded", "upstream"]
Exemption = Literal["all", "own"]
Failing = Literal["last", "filter"]

V = TypeVar("V")

MAX_NODE_SCORE = 100
"""What a policy of weight 1 gives the best node."""


@dataclass(frozen=True, slots=True)
class Preference:
    """How one class, or each class of a family, is to be used.

    Args:
        type: ``MostAllocated`` packs (best is the fullest node), ``LeastAllocated`` spreads (best is the emptiest).
        weight: its share in the mean over the classes of a request; 0 leaves the class out, which takes one class
            from a family.

    Raises:
        InvalidEntry: for another type or weight. (Volcano makes an unknown type LeastAllocated and a bad weight 1.)
    """

    type: Strategy
    weight: Number = 1

    def __post_init__(self) -> None:
        check_word(self.type, get_args(Strategy), "type")
        check_number(self.weight, "weight")


_DEFAULT_PREFERENCES = {"VCPU": Preference("LeastAllocated"), "MEMORY_MB": Preference("LeastAllocated")}


@dataclass(frozen=True, slots=True)
class Fit:
    """The strategy fit: pack some resources, spread others.

    Args:
        resources: class or family -> preference. Unless given, VCPU and MEMORY_MB are spread, with equal weights.
        weight: scores reach from 0 to 100 times this; 0 switches the policy off.

    Raises:
        InvalidEntry: for a wrong name or weight, or if no resource is named.

    >>> Fit({"CUSTOM_GPU_**": Preference("MostAllocated")})
    Traceback (most recent call last):
    ...
    placement.allocators.entries.InvalidEntry: resources.CUSTOM_GPU_**: expected a resource class or a family such as \
CUSTOM_GPU_*, found 'CUSTOM_GPU_**'
    """

    resources: Mapping[str, Preference] = field(default_factory=_DEFAULT_PREFERENCES.copy)
    weight: Number = 10

    def __post_init__(self) -> None:
        check_number(self.weight, "weight")
        _freeze(self, "resources", self.resources)
        for name, preference in self.resources.items():
            if not isinstance(preference, Preference):
                raise InvalidEntry(("resources", name), "a type and a weight", preference)


@dataclass(frozen=True, slots=True)
class Sra:
    """Scarce resource avoidance: keep requests off nodes that have what is scarce.

    Args:
        resources: scarce class or family -> how scarce it is. A family counts once, for whichever of its classes.
        weight: scores reach from 0 to 100 times this; 0 switches the policy off.
        mode: with ``unneeded``, only what the request does not ask for counts against a node. ``upstream`` is the
            formula of Volcano, where a scarce resource counts also against nodes for requests that need it, and a node
            that lacks anything that is asked for gets 0.

    Raises:
        InvalidEntry: for a wrong name, weight or mode, or if no resource is named.
    """

    resources: Mapping[str, Number]
    weight: Number = 10
    mode: ScarceMode = "unneeded"

    def __post_init__(self) -> None:
        check_number(self.weight, "weight")
        check_word(self.mode, get_args(ScarceMode), "mode")
        _freeze(self, "resources", self.resources)
        for name, weight in self.resources.items():
            check_number(weight, "resources", name)


@dataclass(frozen=True, slots=True)
class Proportional:
    """A reserve for scarce resources: so much of other classes has to stay idle for each idle unit of a primary one.

    Args:
        reserve: primary class or family -> secondary class -> units of the secondary for each idle unit of the
            primary, each in the units of its class: ``{"PGPU": {"VCPU": 8, "MEMORY_MB": 8192}}``.
        exempt: ``all`` exempts a request for any primary from everything, as Volcano does. ``own`` exempts it only as
            far as it takes no more than the share of the units that it asks for, and never from the reserve of
            another primary.
        mode: what becomes of nodes that fail: they come ``last``, or they are left out (``filter``).

    Raises:
        InvalidEntry: for a wrong name, number or word, if nothing is reserved, or if a class is reserved for itself.
    """

    reserve: Mapping[str, Mapping[str, Number]]
    exempt: Exemption = "all"
    mode: Failing = "last"

    def __post_init__(self) -> None:
        check_word(self.exempt, get_args(Exemption), "exempt")
        check_word(self.mode, get_args(Failing), "mode")
        _freeze(self, "reserve", self.reserve)
        reserve = {primary: _checked_secondaries(primary, units) for primary, units in self.reserve.items()}
        object.__setattr__(self, "reserve", MappingProxyType(reserve))


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A named set of policies, without its name; each may be left out.

    >>> Profile(fit=Fit(weight=10), sra=Sra({"PGPU": 1}, weight=2)).maximum
    Fraction(1200, 1)
    """

    fit: Fit | None = None
    sra: Sra | None = None
    proportional: Proportional | None = None

    @property
    def maximum(self) -> Fraction:
        """The upper bound of the sum of scores: 100 times the sum of the policies' weights."""
        weights = [exact(policy.weight) for policy in (self.fit, self.sra) if policy is not None]
        return MAX_NODE_SCORE * sum(weights, Fraction())


def _freeze(policy: Fit | Sra | Proportional, name: str, entries: Mapping[str, object]) -> None:
    """Keep a copy of the entries that cannot be changed, under the resource classes that their keys mean."""
    object.__setattr__(policy, name, _frozen(entries, name))


def _frozen(entries: Mapping[str, V], *path: str) -> Mapping[str, V]:
    if not isinstance(entries, Mapping) or not entries:
        raise InvalidEntry(path, "a mapping of at least one resource class", entries)
    return MappingProxyType(by_resource_class(entries, *path))


def _checked_secondaries(primary: str, secondaries: Mapping[str, Number]) -> Mapping[str, Number]:
    path = ("reserve", primary)
    frozen = _frozen(secondaries, *path)
    for secondary, units in frozen.items():
        check_number(units, *path, secondary)
        if secondary.endswith(WILDCARD) or best_match([primary], secondary):
            raise InvalidEntry((*path, secondary), "one other class, not a family", secondary)
    return frozen
