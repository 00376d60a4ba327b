"""Reads joint allocations as rules about one place, where that is what they ask for.

Each place with a primary has every other group, and no other place has any. If any of the groups is a single provider,
there can be only one such place. Which one it is can be tried, whereas several places have to be searched for.
"""

from dataclasses import replace

from placement.domain.planner_request import Affinity, PlannerGroup, PlannerRequest, Within


def with_single_places(request: PlannerRequest) -> PlannerRequest:
    """Return an equivalent request: its required affinities that can only use one place are ``within`` it."""
    single = [one.suffix for one in request.groups if one.count == 1 and not (one.everything or one.per_subtree)]
    in_one = [rule for rule in request.affinity if rule.required and not _names(rule).isdisjoint(single)]
    within = [Within(groups=(rule.primary, *rule.secondaries), level=rule.level) for rule in in_one]
    others = tuple([rule for rule in request.affinity if rule not in in_one])
    counted = frozenset().union(*map(_names, in_one))
    groups = tuple([_counted(one) if one.suffix in counted else one for one in request.groups])
    return replace(request, groups=groups, affinity=others, within=(*request.within, *within))


def _names(rule: Affinity) -> frozenset[str]:
    return frozenset([rule.primary, *rule.secondaries])


def _counted(group: PlannerGroup) -> PlannerGroup:
    """Return a group of an affinity in one place: one provider for this place, but no fewer than its minimum."""
    return replace(group, per_subtree=False)
