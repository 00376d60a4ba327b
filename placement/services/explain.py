"""Explain why a request has no candidates: the use case behind ``/planner/v1/explain``."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from placement.allocators.ranking_profile import RankingProfile
from placement.candidates.explain.explain import explain
from placement.candidates.explain.explanation import Explanation
from placement.candidates.explain.masks import ConditionMasks
from placement.candidates.ranking import Ranking
from placement.domain.places import PlaceLock
from placement.domain.search_plan import CandidateRequest, Plan, plan_for
from placement.services.allocation_candidates import SearchOptions, answer_to
from placement.services.cloud_cache import cloud_in, ids_in
from placement.store.connection.database import Transaction, reads_anywhere
from placement.store.search.names import Named, named_providers


@dataclass(frozen=True, slots=True)
class Explained:
    """An explanation, with the names of the providers it mentions, by id."""

    explanation: Explanation
    providers: Mapping[int, Named]


def explained(
    tx: Transaction,
    request: CandidateRequest,
    *,
    locks: Sequence[PlaceLock] = (),
    profile: RankingProfile | None = None,
) -> Explained:
    """Explain a request within the caller's transaction; a profile may leave candidates out.

    Raises:
        Invalid: a resource class or trait does not exist.
    """
    plan = plan_for(request)
    explanation = explain(plan, condition_masks(tx, plan, locks=locks))
    if explanation.trees_with_candidates and profile is not None and profile.filters:
        options = SearchOptions(locks=tuple(locks))
        if not answer_to(tx, replace(request, limit=1), options, Ranking(profile)).candidates:
            explanation = explanation.left_out_by_profile()
    return Explained(explanation, named_providers(tx, explanation.providers()))


explanation_of = reads_anywhere(explained)


def condition_masks(
    tx: Transaction,
    plan: Plan,
    *,
    locks: Sequence[PlaceLock] = (),
    only_root: int | None = None,
) -> ConditionMasks:
    """Return the conditions of a plan in a snapshot, in the tree with a root, or in all.

    Whoever is inside a place whose lock is held serves nobody else.

    Raises:
        Invalid: a resource class or trait does not exist.
    """
    return ConditionMasks(cloud_in(tx).serving(plan, ids_in(tx, plan, locks=locks)), only_root=only_root)
