"""Why does this request have no candidates? The use case behind ``/planner/v1/explain``."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from placement.candidates.explain.explain import explain
from placement.candidates.explain.explanation import Explanation
from placement.domain.candidate_request import CandidateRequest
from placement.domain.place_lock import PlaceLock
from placement.domain.search_plan import plan_for
from placement.store.connection.unit_of_work import Transaction, reads_anywhere
from placement.store.search.facts import Named, facts_for, named_providers
from placement.store.search.names import ids_for

__all__ = ["Explained", "Named", "explained", "explanation_of"]


@dataclass(frozen=True, slots=True)
class Explained:
    """An explanation, and the names of the providers it mentions, by id."""

    explanation: Explanation
    providers: Mapping[int, Named]


@reads_anywhere
def explanation_of(tx: Transaction, request: CandidateRequest, *, locks: Sequence[PlaceLock] = ()) -> Explained:
    """Explain a request in one snapshot; ``locks`` are what places have as locks.

    Raises:
        Invalid: a resource class or trait does not exist.
    """
    return explained(tx, request, locks=locks)


def explained(tx: Transaction, request: CandidateRequest, *, locks: Sequence[PlaceLock] = ()) -> Explained:
    """Explain a request inside a transaction, for use cases that have one; as ``explanation_of``."""
    plan = plan_for(request)
    explanation = explain(plan, facts_for(tx, plan, ids_for(tx, plan, locks=locks)))
    return Explained(explanation, named_providers(tx, explanation.providers()))
