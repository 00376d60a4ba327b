"""Why does this request of the planner have no candidates? First what single providers miss, then what its rules do."""

from placement.allocators.budget import Budget
from placement.candidates.compose.devices import DeviceComposer
from placement.candidates.compose.paths import PathComposer
from placement.candidates.compose.proposals import ProposalComposer
from placement.candidates.explain.explain import explain
from placement.candidates.explain.explain_rules import explained_with_rules
from placement.candidates.explain.rule_search import RuleSearch
from placement.candidates.explain.rules import rules_of, with_rules
from placement.domain.planner_request import PlannerRequest
from placement.domain.search_plan import plan_for
from placement.services.explain import Explained
from placement.services.planner.composers import STEPS_PER_REQUEST, PlannerOptions
from placement.services.planner.ground import Ground
from placement.store.search.facts import facts_for, named_providers
from placement.store.search.names import ids_for


def explained_plan(ground: Ground, options: PlannerOptions, *, nothing_found: bool = True) -> Explained:
    """Explain the request of a ground, by the trees that have been read there, and the others.

    Args:
        ground: the request, and what is known of the snapshot.
        options: the operator's.
        nothing_found: whether planning found no place at all.
    """
    request, prepared = ground.request, ground.prepared
    plan = prepared.plan if request.paths else plan_for(request.plain)
    explanation = explain(plan, facts_for(ground.tx, plan, ids_for(ground.tx, plan)))
    if explanation.cause is None:
        explanation = explained_with_rules(explanation, request, _search(ground, options))
    if explanation.cause is None and explanation.complete and nothing_found and options.profile.filters:
        explanation = explanation.left_out_by_profile()
    return Explained(explanation, named_providers(ground.tx, explanation.providers()))


def _search(ground: Ground, options: PlannerOptions) -> RuleSearch:
    plan, levels = ground.prepared.plan, ground.prepared.levels

    def composer_for(request: PlannerRequest) -> ProposalComposer:
        # Trees were read for the whole request: its levels and demands are theirs, whatever rules are left out.
        if request.paths:
            return PathComposer(request, levels, locks=options.locks)
        return DeviceComposer(request, plan, levels, locks=options.locks)

    search = RuleSearch(ground.prepared.kind, ground.in_detail(), composer_for, Budget(STEPS_PER_REQUEST))
    search.note(with_rules(ground.request, rules_of(ground.request)), ground.served)
    return search
