"""Explain why a planner request has no candidates: first by what single providers lack, then by its rules."""

from collections.abc import Mapping

from placement.allocators.budget import Budget
from placement.candidates.compose.devices import DeviceComposer
from placement.candidates.compose.paths import PathComposer
from placement.candidates.compose.proposals import ProposalComposer
from placement.candidates.explain.explain import explain
from placement.candidates.explain.explain_rules import RuleSearches, columns_seen, explain_request, rules_of
from placement.candidates.explain.provider_masks import ConditionMasks
from placement.candidates.planner.question import PlannerQuestion
from placement.domain.planner_request import PlannerRequest
from placement.domain.search_plan import Plan, plan_for
from placement.services.explain import Explained, condition_masks
from placement.services.planner.composers import STEPS_PER_REQUEST, PlannerOptions
from placement.store.connection.unit_of_work import Transaction
from placement.store.search.provider_names import named_providers


def explained_plan(
    tx: Transaction, question: PlannerQuestion, options: PlannerOptions, *, nothing_found: bool = True
) -> Explained:
    """Explain the request of a question on the cloud as it is.

    Args:
        tx: the snapshot.
        question: the request, and what is known of the snapshot.
        options: the operator's settings.
        nothing_found: whether planning found no place at all.
    """
    request, plan = question.request, question.prepared.plan
    masks = condition_masks(tx, plan, cache=options.cache)
    locks = _locks(tx, options)
    if rules_of(request) or request.paths or locks:
        explanation = explain_request(request, plan, masks, _searches(question, masks, locks))
    else:
        explanation = explain(plan, masks)
    if explanation.cause is None and explanation.complete and nothing_found and options.profile.filters:
        explanation = explanation.left_out_by_profile()
    return Explained(explanation, named_providers(tx, explanation.providers()))


def _locks(tx: Transaction, options: PlannerOptions) -> Mapping[str, str]:
    """Return the locks by level; nobody can hold a place by a class that does not exist."""
    existing = tx.names.classes.ids(tx.connection, {*options.locks.values()})
    return {level: name for level, name in options.locks.items() if name in existing}


def _searches(question: PlannerQuestion, masks: ConditionMasks, locks: Mapping[str, str]) -> RuleSearches:
    request, levels, serving = question.request, question.prepared.levels, masks.serving

    def composer_for(variant: PlannerRequest, plan: Plan) -> ProposalComposer:
        # Levels apply whichever rules are left out.
        if variant.paths:
            return PathComposer(variant, levels, locks=locks)
        return DeviceComposer(variant, plan, levels, locks=locks)

    def plan_of_paths(variant: PlannerRequest) -> Plan:
        return plan_for(PathComposer(variant, levels, locks=locks).plain())

    # All stocks matter to nested parts, and what is in use to groups that want a place to themselves.
    deciding = question.cloud.deciding(None if request.paths else {*locks.values()})
    seen = columns_seen(serving, deciding, in_use=question.use.is_in_use if request.exclusive else None)
    return RuleSearches(composer_for, plan_of_paths, question.outlines.of, seen, Budget(STEPS_PER_REQUEST))
