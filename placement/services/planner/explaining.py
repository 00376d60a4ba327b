"""Explain why a planner request has no candidates: first by what single providers lack, then by its rules."""

from collections.abc import Mapping
from functools import cache

from placement.allocators.budget import Budget
from placement.candidates.compose.devices import DeviceComposer
from placement.candidates.compose.free_places import PlacesInUse
from placement.candidates.compose.paths import PathComposer
from placement.candidates.compose.proposals import ProposalComposer
from placement.candidates.explain.explain import explain
from placement.candidates.explain.explain_rules import explained_with_rules
from placement.candidates.explain.explanation import Explanation
from placement.candidates.explain.rule_search import RuleSearch, SearchedHosts
from placement.candidates.explain.rules import rules_of, with_rules
from placement.candidates.host_kinds import RoomKinds
from placement.candidates.planner.question import PlannerQuestion
from placement.domain.planner_request import PlannerRequest
from placement.domain.search_plan import plan_for
from placement.services.explain import Explained, condition_masks
from placement.services.planner.composers import STEPS_PER_REQUEST, PlannerOptions
from placement.store.connection.unit_of_work import Transaction
from placement.store.search.provider_names import named_providers


def explained_plan(
    tx: Transaction, question: PlannerQuestion, options: PlannerOptions, *, nothing_found: bool = True
) -> Explained:
    """Explain the request of a question, reusing what planning found out there.

    Args:
        tx: the snapshot.
        question: the request, and what is known of the snapshot.
        options: the operator's settings.
        nothing_found: whether planning found no place at all.
    """
    request, prepared = question.request, question.prepared
    plan = prepared.plan if request.paths else plan_for(request.plain)
    explanation = explain(plan, condition_masks(tx, plan, cache=options.cache))
    if explanation.cause is None:
        # Of a plain request without rules all is known: its trees, perhaps of the whole cloud, need not be read.
        if not explanation.complete or rules_of(request) or not _is_plain(question, _locks(tx, options)):
            explanation = explained_with_rules(explanation, request, _search(tx, question, options, plain=explanation))
    elif request.paths or rules_of(request):
        explanation = explanation.with_rules_aside()
    if explanation.cause is None and explanation.complete and nothing_found and options.profile.filters:
        explanation = explanation.left_out_by_profile()
    return Explained(explanation, named_providers(tx, explanation.providers()))


def _locks(tx: Transaction, options: PlannerOptions) -> Mapping[str, str]:
    """Return the locks by level; nobody can hold a place by a class that does not exist."""
    existing = tx.names.classes.ids(tx.connection, {*options.locks.values()})
    return {level: name for level, name in options.locks.items() if name in existing}


def _is_plain(question: PlannerQuestion, locks: Mapping[str, str]) -> bool:
    """Tell whether the request without its rules is a plain one, as it is where nobody can hold a place."""
    return not (question.request.paths or locks or question.spares)


def _search(tx: Transaction, question: PlannerQuestion, options: PlannerOptions, *, plain: Explanation) -> RuleSearch:
    plan, levels, locks = question.prepared.plan, question.prepared.levels, _locks(tx, options)

    def composer_for(request: PlannerRequest) -> ProposalComposer:
        # Trees were read for the whole request, so its levels and demands apply whichever rules are left out.
        if request.paths:
            return PathComposer(request, levels, locks=locks)
        return DeviceComposer(request, plan, levels, locks=locks)

    def places_in_use() -> PlacesInUse:
        return question.use.places_in_use({tree.root for tree in trees}, question.level_ids)

    trees = question.reader.all_trees().trees
    room_of, kind = RoomKinds(plan).kind, question.prepared.kind
    hosts = SearchedHosts(trees, room_of, kind, question.outlines.of, cache(places_in_use))
    search = RuleSearch(hosts, composer_for, Budget(STEPS_PER_REQUEST))
    search.note(with_rules(question.request, rules_of(question.request)), question.served)
    if plain.complete and _is_plain(question, locks):
        search.note(with_rules(question.request, ()), {root: root in plain.serving for root in search.roots})
    return search
