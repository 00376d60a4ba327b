"""A parsed GET /allocation_candidates request, and the plan of its search: what to place, and which demands compete.

Requests know neither query strings nor microversions.

The unit of the search is the *slot*: something that exactly one provider serves. A granular group is one slot, the
unsuffixed group is one slot per resource class. Slots that ask for the same under the same conditions share one
*demand*, so that the database is queried once for all of them: sixteen groups of one device each are sixteen slots of
one demand.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, fields

SHARING_TRAIT = "MISC_SHARES_VIA_AGGREGATE"
"""Marks a provider that shares with all trees that are in one of its aggregates."""

Choice = tuple[int, ...]
"""The provider of each slot of a plan, in the plan's order."""

UNSUFFIXED = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestGroup:
    """One group of a request.

    A *granular* group (with a suffix) is served by a single provider; without resources, it only requires that one
    exists. The unsuffixed group may take each of its classes from a different provider of the tree, or from a sharing
    one. ``required`` and ``member_of`` are conjunctions of any-of sets.
    """

    suffix: str = UNSUFFIXED
    resources: Mapping[str, int] = field(default_factory=dict)
    required: tuple[frozenset[str], ...] = ()
    forbidden: frozenset[str] = frozenset()
    member_of: tuple[frozenset[str], ...] = ()
    forbidden_aggregates: frozenset[str] = frozenset()
    in_tree: str | None = None

    @property
    def is_granular(self) -> bool:
        """Whether one provider must serve the whole group."""
        return self.suffix != UNSUFFIXED

    @property
    def is_spanned(self) -> bool:
        """Whether the aggregates of a root count for all of its tree."""
        return bool(self.member_of) and not self.is_granular


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateRequest:
    """A whole request, with at most one unsuffixed group.

    ``same_subtree``: among the providers of each set of suffixes, one is an ancestor of all others.
    ``root_required``: sets of traits; the root has at least one trait of each.
    ``combines_nested``: whether several providers of one tree may serve one request (microversion 1.29).
    """

    groups: tuple[RequestGroup, ...]
    isolate: bool = False
    same_subtree: tuple[frozenset[str], ...] = ()
    root_required: frozenset[frozenset[str]] = frozenset()
    root_forbidden: frozenset[str] = frozenset()
    limit: int | None = None
    combines_nested: bool = True


@dataclass(frozen=True, slots=True)
class Demand:
    """What slots ask of a provider: amounts as (class, amount), under the conditions of a group.

    If it ``ignores_usage``, every provider that meets the conditions and has capacity at all matches, with room or
    without.
    """

    resources: tuple[tuple[str, int], ...]
    group: RequestGroup
    ignores_usage: bool = False

    @property
    def required(self) -> tuple[frozenset[str], ...]:
        """The any-of sets of traits that the provider has to meet alone."""
        return self.group.required if _is_of_one_provider(self.group) else ()

    @property
    def identity(self) -> tuple[object, ...]:
        """The key that two demands share if and only if the same providers serve them."""
        group = self.group
        conditions = [getattr(group, part.name) for part in fields(group) if part.name not in {"suffix", "resources"}]
        return (group.is_granular, self.resources, *conditions)


@dataclass(frozen=True, slots=True)
class Slot:
    """Something that one provider serves. ``demand`` is an index into ``Plan.demands``."""

    suffix: str
    resources: tuple[tuple[str, int], ...]
    demand: int

    @property
    def is_granular(self) -> bool:
        """Whether this slot is a granular group, rather than one class of the unsuffixed group."""
        return self.suffix != ""


@dataclass(frozen=True, slots=True)
class Plan:
    """The search plan of one request.

    ``contended`` are the resource classes of which several slots may take from one provider: only their amounts can add
    up; everything else is checked when a provider is found. ``trait_sets`` are the any-of sets each of which the
    providers of an unsuffixed group with several classes must meet jointly.
    """

    request: CandidateRequest
    slots: tuple[Slot, ...]
    demands: tuple[Demand, ...]
    contended: tuple[str, ...]
    trait_sets: tuple[frozenset[str], ...]
    forbidden_root_aggregates: frozenset[str]

    @property
    def trait_names(self) -> set[str]:
        """All traits that the request names."""
        request = self.request
        of_groups = [
            name for group in request.groups for any_of in (*group.required, group.forbidden) for name in any_of
        ]
        return set(request.root_forbidden).union(of_groups, *request.root_required)

    @property
    def is_unconstrained(self) -> bool:
        """Whether every combination of matching providers is a candidate."""
        request = self.request
        ties = self.contended or request.same_subtree or self.trait_sets or not request.combines_nested
        return not ties and not (request.isolate and sum(slot.is_granular for slot in self.slots) > 1)

    @property
    def counted(self) -> list[tuple[int, int]]:
        """(demand, number) for isolated granular groups that need several distinct providers of one demand."""
        granular = [slot.demand for slot in self.slots if slot.is_granular and slot.resources]
        return [(demand, count) for demand, count in Counter(granular).items() if self.request.isolate and count > 1]


@dataclass(frozen=True, slots=True)
class NamedIds:
    """The ids of the names in a request. Names that the database does not know are absent.

    ``levels`` are the traits of the requested levels, None for one that no provider has; ``locks`` the requested locks
    that have inventory, each with the trait of its level, None if every provider is a place of it.
    """

    classes: Mapping[str, int]
    traits: Mapping[str, int]
    aggregates: Mapping[str, int]
    roots: Mapping[str, int]
    shares: bool
    levels: tuple[int | None, ...] = ()
    locks: Mapping[int, int | None] = field(default_factory=dict)

    @property
    def sharing_trait(self) -> int:
        """The id of the trait that marks a sharing provider."""
        return self.traits[SHARING_TRAIT]


def plan_for(request: CandidateRequest) -> Plan:
    """Build the plan of a request."""
    demands: dict[tuple[object, ...], Demand] = {}
    slots = []
    for group in request.groups:
        for resources in _portions(group):
            demand = Demand(resources, group)
            demands.setdefault(demand.identity, demand)
            slots.append(Slot(group.suffix, resources, list(demands).index(demand.identity)))
    unsuffixed = next((group for group in request.groups if not group.is_granular), RequestGroup())
    return Plan(
        request=request,
        slots=tuple(slots),
        demands=tuple(demands.values()),
        contended=_contended(slots, isolate=request.isolate),
        trait_sets=() if _is_of_one_provider(unsuffixed) else unsuffixed.required,
        # A root in any of these aggregates excludes its whole tree for the unsuffixed group, hence for the request.
        forbidden_root_aggregates=unsuffixed.forbidden_aggregates,
    )


def _is_of_one_provider(group: RequestGroup) -> bool:
    """Tell whether one provider serves all of a group: a granular one, or an unsuffixed one of a single class."""
    return group.is_granular or len(group.resources) == 1


def _contended(slots: list[Slot], *, isolate: bool) -> tuple[str, ...]:
    demands = Counter(name for slot in slots for name, _amount in slot.resources)
    # Isolated groups never share a provider, but each may share one with the unsuffixed group.
    loose = {name for slot in slots if not slot.is_granular for name, _amount in slot.resources}
    return tuple(sorted(name for name, count in demands.items() if count > 1 and (name in loose or not isolate)))


def _portions(group: RequestGroup) -> list[tuple[tuple[str, int], ...]]:
    """Split a group into the amounts that one provider must serve together."""
    amounts = tuple(sorted(group.resources.items()))
    return [amounts] if group.is_granular else [(amount,) for amount in amounts]


@dataclass(frozen=True, slots=True)
class SearchLimits:
    """The limits of one search, the same for every request; tests make them small.

    Args:
        placements: the maximum number of providers that the candidates of an answer name: some 60 MB of JSON.
        first_trees: the number of trees in the first portion if the best come first, or the number of candidates wanted
            if that is larger: a statement costs more than a few trees.
        growth: the ratio of each portion to the one before, which makes the number of statements logarithmic.
    """

    steps_per_tree: int = 1_000_000
    steps_per_request: int = 4_000_000
    placements: int = 500_000
    first_trees: int = 16
    growth: int = 4


LIMITS = SearchLimits()
"""The limits on a server."""
