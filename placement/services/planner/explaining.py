"""Why does this request of the planner have no candidates? First what single providers miss, then what its rules do."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from placement.allocators.budget import Budget
from placement.candidates.compose.proposals import ProposalComposer
from placement.candidates.explain.explain import explain
from placement.candidates.explain.explain_rules import explained_with_rules
from placement.candidates.explain.rule_search import RuleSearch
from placement.candidates.layout import laid_out
from placement.domain.planner_request import PlannerRequest
from placement.domain.planner_tree import PlannerTree
from placement.domain.search_plan import plan_for
from placement.domain.tree import Tree
from placement.services.explain import Explained
from placement.services.planner.composers import STEPS_PER_REQUEST, Composers, PlannerOptions, Prepared
from placement.services.planner.details import Details
from placement.store.connection.unit_of_work import Transaction
from placement.store.search.facts import facts_for, named_providers
from placement.store.search.names import ids_for
from placement.store.search.narrowing import Narrowing
from placement.store.search.trees import TreeReader

AT_ONCE = 256
"""Trees whose details are read together: one of each kind is kept."""


InDetail = Iterable[tuple[Tree, PlannerTree]]
"""The trees in which each demand has a provider."""


def explained_plan(
    tx: Transaction, request: PlannerRequest, options: PlannerOptions, *, known: InDetail | None = None
) -> Explained:
    """Explain a request of the planner inside a transaction.

    Args:
        tx: the transaction.
        request: the request.
        options: the operator's.
        known: its trees, where they have been read.

    Raises:
        InvalidAt: the request names something that does not exist.
    """
    prepared = Composers().prepared(request, options)
    plan = prepared.plan if request.paths else plan_for(request.plain)
    explanation = explain(plan, facts_for(tx, plan, ids_for(tx, plan)))
    if explanation.cause is None:
        trees = _in_detail(tx, prepared, with_units=bool(request.paths)) if known is None else known
        # Levels that only rules name are there without these rules, too.
        levels = dict(zip(prepared.levels.names, prepared.levels.traits, strict=True))
        search = _search(trees, replace(options, levels=levels))
        explanation = explained_with_rules(explanation, request, search)
    return Explained(explanation, named_providers(tx, explanation.providers()))


def _search(trees: InDetail, options: PlannerOptions) -> RuleSearch:
    def composer_for(request: PlannerRequest) -> ProposalComposer:
        return Composers().prepared(request, options).composer

    return RuleSearch(trees, composer_for, Budget(STEPS_PER_REQUEST))


def _in_detail(tx: Transaction, prepared: Prepared, *, with_units: bool) -> Iterator[tuple[Tree, PlannerTree]]:
    """Yield the trees in which each demand has a provider."""
    trees = laid_out(TreeReader(tx, Narrowing(tx, prepared.plan, ids_for(tx, prepared.plan))).all_trees())
    details = Details(tx, prepared.levels, with_units=with_units)
    for first in range(0, len(trees), AT_ONCE):
        some = trees[first : first + AT_ONCE]
        yield from zip(some, details.of(some), strict=True)
