"""From requests to the plans whose copies are counted: a group of several providers becomes as many slots."""

from collections.abc import Iterable
from dataclasses import replace

from placement.domain.candidate_request import CandidateRequest
from placement.domain.planner_request import PlannerRequest
from placement.domain.search_plan import Plan, plan_for

CountedRequest = CandidateRequest | PlannerRequest


def counted_plan(request: CountedRequest) -> Plan:
    """Return the plan of a request, without its rules about places if it ``has_rules``."""
    if isinstance(request, CandidateRequest):
        return plan_for(request)
    plan = plan_for(replace(request.plain, same_subtree=request.same_subtree))
    counts = {one.suffix: 1 if one.everything or one.per_subtree else one.count for one in request.groups}
    return replace(plan, slots=tuple([slot for slot in plan.slots for _ in range(counts[slot.suffix])]))


def has_rules(request: CountedRequest) -> bool:
    """Tell whether a request says more than slots can, so that the copies of its plan are only an upper bound."""
    if isinstance(request, CandidateRequest):
        return False
    places = [rule.required for rule in request.affinity] + [rule.required for rule in request.within]
    devices = [one.everything or one.per_subtree or one.device is not None for one in request.groups]
    return any(places) or any(devices) or bool(request.exclusive or request.avoided_trees or request.paths)


def all_together(requests: Iterable[CountedRequest]) -> CandidateRequest:
    """Return a request that names everything the given requests name."""
    plain = [one.plain if isinstance(one, PlannerRequest) else one for one in requests]
    return CandidateRequest(
        groups=tuple([group for one in plain for group in one.groups]),
        root_required=frozenset[str]().union(*[one.root_required for one in plain]),
        root_forbidden=frozenset[str]().union(*[one.root_forbidden for one in plain]),
    )
