"""The parts that can be left out of a request, a resource class or a whole group, each with the rest of the request."""

from collections.abc import Iterator
from dataclasses import replace

from placement.candidates.explain.conditions import Condition, ConditionKind
from placement.candidates.explain.demands import groups_of
from placement.domain.candidate_request import CandidateRequest, RequestGroup
from placement.domain.search_plan import Plan


def removable_parts(plan: Plan) -> Iterator[tuple[Condition, CandidateRequest]]:
    """Yield each part with the rest of the request: first classes, of groups that ask for several, then groups.

    Groups that ask for the same are left out together. A part is not, if nothing would be asked for without it.
    """
    for index, demand in enumerate(plan.demands):
        groups = groups_of(plan, index)
        for name, _amount in demand.resources:
            if len(demand.group.resources) > 1:
                less = replace(plan.request, groups=tuple(_without_class(plan, name, groups)))
                yield Condition(ConditionKind.RESOURCE, groups, name), less
    for groups in dict.fromkeys(groups_of(plan, index) for index in range(len(plan.demands))):
        less = _without_groups(plan.request, frozenset(groups))
        if any(group.resources for group in less.groups):
            yield Condition(ConditionKind.GROUP, groups, ",".join(groups)), less


def _without_class(plan: Plan, name: str, groups: tuple[str, ...]) -> Iterator[RequestGroup]:
    for group in plan.request.groups:
        if group.suffix in groups:
            resources = {other: amount for other, amount in group.resources.items() if other != name}
            yield replace(group, resources=resources)
        else:
            yield group


def _without_groups(request: CandidateRequest, suffixes: frozenset[str]) -> CandidateRequest:
    tied = (of_set - suffixes for of_set in request.same_subtree)
    return replace(
        request,
        groups=tuple(group for group in request.groups if group.suffix not in suffixes),
        same_subtree=tuple(of_set for of_set in tied if of_set),
    )
