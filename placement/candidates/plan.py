"""From a request to the plan of its search: what has to be placed, and which demands compete.

The unit of the search is the *slot*: something that exactly one provider serves. A granular group is one slot, the
unsuffixed group is one slot per resource class. Slots that ask the same under the same conditions are of one *kind*,
so that the database is asked once for all of them: sixteen groups of one device each are sixteen slots of one kind.
"""

from collections import Counter
from dataclasses import dataclass

from placement.domain.candidate_request import CandidateRequest, RequestGroup


@dataclass(frozen=True, slots=True)
class Kind:
    """What providers are looked for: these amounts (class, amount) under the conditions of this group."""

    resources: tuple[tuple[str, int], ...]
    group: RequestGroup


@dataclass(frozen=True, slots=True)
class Slot:
    """Something that one provider serves. ``kind`` is an index into ``Plan.kinds``."""

    suffix: str
    resources: tuple[tuple[str, int], ...]
    kind: int

    @property
    def is_granular(self) -> bool:
        """Whether this slot is a granular group, rather than one class of the unsuffixed group."""
        return self.suffix != ""


@dataclass(frozen=True, slots=True)
class Plan:
    """The search of one request.

    ``contended`` are the resource classes that more than one slot asks for: only their amounts can add up on one
    provider, everything else was checked when the provider was found. ``trait_sets`` are the any-of sets of which the
    providers of the unsuffixed group must meet each together.
    """

    request: CandidateRequest
    slots: tuple[Slot, ...]
    kinds: tuple[Kind, ...]
    contended: tuple[str, ...]
    trait_sets: tuple[frozenset[str], ...]
    forbidden_root_aggregates: frozenset[str]


def plan_for(request: CandidateRequest) -> Plan:
    """Make the plan of a request."""
    kinds: dict[tuple[object, ...], Kind] = {}
    slots = []
    for group in request.groups:
        for resources in _portions(group):
            identity = _identity(group, resources)
            kinds.setdefault(identity, Kind(resources, group))
            slots.append(Slot(group.suffix, resources, list(kinds).index(identity)))
    asked = Counter(name for slot in slots for name, _ in slot.resources)
    unsuffixed = next((group for group in request.groups if not group.is_granular), RequestGroup())
    return Plan(
        request=request,
        slots=tuple(slots),
        kinds=tuple(kinds.values()),
        contended=tuple(sorted(name for name, count in asked.items() if count > 1)),
        trait_sets=unsuffixed.required,
        # A root outside none of them excludes its whole tree for the unsuffixed group, hence for the request.
        forbidden_root_aggregates=unsuffixed.forbidden_aggregates,
    )


def _portions(group: RequestGroup) -> list[tuple[tuple[str, int], ...]]:
    """Return the amounts that one provider must serve together."""
    amounts = tuple(sorted(group.resources.items()))
    return [amounts] if group.is_granular else [(amount,) for amount in amounts]


def _identity(group: RequestGroup, resources: tuple[tuple[str, int], ...]) -> tuple[object, ...]:
    conditions = (group.required, group.forbidden, group.member_of, group.forbidden_aggregates, group.in_tree)
    return (group.is_granular, resources, *conditions)
