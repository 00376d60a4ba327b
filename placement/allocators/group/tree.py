"""The Group Allocator's inputs: locations that offer resources, what scores these, and trees of requirements.

All are plain values. The paper lets every resource define its own scorer (parts II-C and III, equations 17 to 25). Here
are the two it needs, quantities and enumerations, and what the search must know about any other.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from fractions import Fraction
from functools import lru_cache, reduce
from operator import or_
from typing import NamedTuple

from placement.allocators import natural_key


class Phase(Enum):
    """When a container runs: regular ones concurrently, init containers before them and one after the other."""

    RUNNING = "running"
    INITIALISATION = "initialisation"


class Used(NamedTuple):
    """The usage of a resource in its own unit: by all in total, and by the request itself ("by the pod")."""

    total: int = 0
    own: int = 0


class Verdict(NamedTuple):
    """A scorer's result; the score, 0 to 1, says how well the resource is used afterwards, or without requests, now."""

    fits: bool
    score: Fraction | float
    used: Used


ScoreFunction = Callable[[int, Used, Sequence[int], Phase], Verdict]
"""(allocatable, used before, the amounts one container asks of this resource, phase) -> verdict."""


@dataclass(frozen=True, slots=True)
class Scorer:
    """A score function, and properties the search may rely on: a false one breaks exactness, a missing one costs speed.

    Args:
        judge: the function. It must be pure, with scores in 0..1 and independent of the order of the amounts; any
            subset of amounts that fit must fit.
        adds_up: amounts count as their sum, running ones fit only while total usage including them is within the
            allocatable amount, and they may be judged one after another.
        diminishing: as usage grows, what does not fit never starts to fit, and a request never raises the score by
            more.
    """

    judge: ScoreFunction
    adds_up: bool = False
    diminishing: bool = False


def judge_quantity(allocatable: int, used: Used, requested: Sequence[int], phase: Phase) -> Verdict:
    """Judge an amount that is consumed; the score is the fraction in use afterwards.

    Running containers add up. An init container takes only what it needs beyond all running ones, because it has
    finished before they start (vector GA-25). Asking for nothing always fits, even where the resource is over capacity.

    >>> judge_quantity(400, Used(200, own=100), [60], Phase.INITIALISATION).used
    Used(total=200, own=100)
    >>> judge_quantity(400, Used(200, own=100), [150], Phase.INITIALISATION).used
    Used(total=250, own=150)
    """
    amount = sum(requested)
    own = used.own + amount if phase is Phase.RUNNING else max(used.own, amount)
    total = used.total + own - used.own
    share = Fraction(min(total, allocatable), allocatable) if allocatable > 0 else Fraction(0)
    return Verdict(amount == 0 or total <= allocatable, share, Used(total, own))


def judge_enumeration(allocatable: int, used: Used, requested: Sequence[int], phase: Phase) -> Verdict:  # noqa: ARG001
    """Judge an attribute: bit masks of its values and of the acceptable ones; nothing is consumed.

    A request fits if it asks for nothing or shares a bit with the attribute; the score is the fraction of its bits that
    all requests together name (vector GA-15).
    """
    named = reduce(or_, requested, used.own)
    bits = allocatable.bit_count()
    score = Fraction((allocatable & named).bit_count(), bits) if bits else Fraction(0)
    return Verdict(all(not mask or mask & allocatable for mask in requested), score, Used(used.total, named))


QUANTITY = Scorer(judge_quantity, adds_up=True, diminishing=True)
ENUMERATION = Scorer(judge_enumeration, diminishing=True)


class Units(NamedTuple):
    """The amounts in which a resource can be allocated: each at least ``least``, in steps; up to ``max_total``."""

    least: int = 0
    max_total: int | None = None
    step: int = 1

    def allow(self, amounts: Sequence[int], together: int) -> bool:
        """Tell whether these amounts are allowed, given their total including earlier ones."""
        fits = all([amount == 0 or (amount >= self.least and amount % self.step == 0) for amount in amounts])
        return fits and (self.max_total is None or together <= self.max_total)


ANY_AMOUNT = Units()


@lru_cache(maxsize=1024)
def in_units(scorer: Scorer, units: Units) -> Scorer:
    """Return a scorer that also refuses amounts outside these units."""
    if units == ANY_AMOUNT:
        return scorer

    def judge(allocatable: int, used: Used, requested: Sequence[int], phase: Phase) -> Verdict:
        verdict = scorer.judge(allocatable, used, requested, phase)
        is_allowed = not any(requested) or units.allow(requested, verdict.used.own)
        return verdict._replace(fits=verdict.fits and is_allowed)

    return replace(scorer, judge=judge)


ScorerChoice = Callable[[str], Scorer]
"""Maps the base name of an allocatable resource to its scorer."""


def scorer_by_name(base: str) -> Scorer:
    """Return the paper's scorer for a resource: names whose last part starts with ``enum`` are enumerations."""
    return ENUMERATION if base.rsplit("/", 1)[-1].lower().startswith("enum") else QUANTITY


Path = tuple[tuple[str, str], ...]
"""A location's address: the (level, name) pairs from just below the root down to it; () for the root."""


ANYWHERE = "*"
"""As the level of a requirement: any location inside the enclosing one."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """One allocatable resource of a location: total and usage in one unit; ``units`` restricts the amounts."""

    allocatable: int
    used: int = 0
    units: Units = ANY_AMOUNT


@dataclass(frozen=True, slots=True)
class Location:
    """A place with resources of its own and smaller places inside.

    Args:
        name: unique among its siblings of the same level; breaks ties, in natural order.
        level: the kind of place (``numa``, ``gpu``); ignored for the root.
        capacities: its own resources, excluding those of the places inside.
    """

    name: str = ""
    level: str = ""
    capacities: Mapping[str, Capacity] = field(default_factory=dict)
    children: tuple["Location", ...] = ()


@dataclass(frozen=True, slots=True)
class Requirement:
    """A request for one location of a level, with requirements for locations inside it.

    Args:
        label: tells it from its siblings; never compared with the name of a location.
        level: the level of the location, or ``ANYWHERE``; ignored for a requirement on the root itself.
        amounts: what the location itself must offer.
        parts: the requirements to serve inside the location, at any depth.
        phase: when it runs; the outermost requirement's applies to all its parts.
        only: if given, the only locations it may have.
    """

    label: str = ""
    level: str = ""
    amounts: Mapping[str, int] = field(default_factory=dict)
    parts: tuple["Requirement", ...] = ()
    phase: Phase = Phase.RUNNING
    only: frozenset[Path] | None = None


@dataclass(frozen=True, slots=True)
class Placed:
    """A requirement and the location it got; its parts are in the requirement's order."""

    requirement: Requirement
    path: Path
    parts: tuple["Placed", ...] = ()

    def walk(self) -> Iterator["Placed"]:
        """Yield this requirement and all its parts, outermost first."""
        yield self
        for part in self.parts:
            yield from part.walk()


LevelTree = dict[str, "LevelTree"]
"""The levels that occur inside a location, each with those inside it."""


def translated(requested: Requirement, root: Location) -> Requirement:
    """Return a request in which each part is inside requirements of its own for all levels around it (part V).

    Where a level occurs at several depths, the shallowest counts; locations without a level do not. Placement does not
    need this, but groups that nobody asks for keep nothing apart, while each group here gets outer ones of its own.

    >>> device = Location("dev0", "gpu")
    >>> root = Location(children=(Location("0", "grp1", children=(Location("0", "grp0", children=(device,)),)),))
    >>> (outer,) = translated(Requirement(parts=(Requirement("RA", "grp0"),)), root).parts
    >>> outer.level, [part.label for part in outer.parts]
    ('grp1', ['RA'])
    """

    def add_levels(location: Location, levels: LevelTree) -> LevelTree:
        for child in location.children:
            add_levels(child, levels.setdefault(child.level, {}) if child.level else levels)
        return levels

    def inside(requirement: Requirement, levels: LevelTree) -> Requirement:
        parts = []
        for part in requirement.parts:
            around, levels_inside = _way_to(part.level, levels)
            whole = inside(part, levels_inside)
            for level in reversed(around):
                whole = Requirement(level=level, parts=(whole,), phase=part.phase)
            parts.append(whole)
        return replace(requirement, parts=tuple(parts))

    return inside(requested, add_levels(root, {}))


def _way_to(level: str, levels: LevelTree) -> tuple[tuple[str, ...], LevelTree]:
    """Return the levels around the shallowest occurrence of a level, outermost first, and what is inside it."""
    ways: list[tuple[tuple[str, ...], LevelTree]] = [((), levels)]
    for around, levels_here in ways:
        if level in levels_here:
            return around, levels_here[level]
        ways += [((*around, name), levels_here[name]) for name in sorted(levels_here, key=natural_key)]
    return (), {}
