"""What GET /allocation_candidates asks for, free of query strings and microversions."""

from collections.abc import Mapping
from dataclasses import dataclass, field

UNSUFFIXED = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestGroup:
    """One group of a request.

    A *granular* group (with a suffix) is served by one single provider. The unsuffixed group may take each of its
    resource classes from another provider of the tree, or from a provider that shares with the tree.

    ``required`` is a conjunction of any-of sets of traits, ``member_of`` one of any-of sets of aggregates. A granular
    group without resources only demands that a fitting provider exists.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateRequest:
    """A whole request.

    Args:
        groups: at most one unsuffixed, and any number of granular ones.
        isolate: whether every granular group needs a provider of its own.
        same_subtree: sets of suffixes; among the providers of each set one is an ancestor of all (or the only one).
        root_required, root_forbidden: traits the root of the tree has, or has not.
        limit: how many candidates at most.
        combines_nested: whether several providers of one tree may serve one request (microversion 1.29).
    """

    groups: tuple[RequestGroup, ...]
    isolate: bool = False
    same_subtree: tuple[frozenset[str], ...] = ()
    root_required: frozenset[str] = frozenset()
    root_forbidden: frozenset[str] = frozenset()
    limit: int | None = None
    combines_nested: bool = True
