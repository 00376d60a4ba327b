"""A parsed GET /allocation_candidates request, independent of query strings and microversions."""

from collections.abc import Mapping
from dataclasses import dataclass, field

UNSUFFIXED = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestGroup:
    """One group of a request.

    A *granular* group (with a suffix) is served by a single provider. The unsuffixed group may take each of its
    resource classes from a different provider of the tree, or from a sharing provider.

    ``required`` is a conjunction of any-of sets of traits, ``member_of`` one of any-of sets of aggregates. A granular
    group without resources only requires that a matching provider exists.
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
        groups: at most one unsuffixed group, and any number of granular ones.
        isolate: whether every granular group needs a provider of its own.
        same_subtree: sets of suffixes; among the providers of each set, one is an ancestor of all others.
        root_required, root_forbidden: traits that the root of the tree must have, or must lack.
        limit: the maximum number of candidates.
        combines_nested: whether several providers of one tree may serve one request (microversion 1.29).
    """

    groups: tuple[RequestGroup, ...]
    isolate: bool = False
    same_subtree: tuple[frozenset[str], ...] = ()
    root_required: frozenset[str] = frozenset()
    root_forbidden: frozenset[str] = frozenset()
    limit: int | None = None
    combines_nested: bool = True
