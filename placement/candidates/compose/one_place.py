"""Reads joint allocations as rules about one place, where that is what they ask for.

Each place with a primary has every other group, and no other place has any. If any of the groups is a single provider,
there can be only one such place. Which one it is can be tried, whereas several places have to be searched for.
"""

from dataclasses import replace

from placement.domain.planner_request import Affinity, PlannerRequest, Within


def with_single_places(request: PlannerRequest) -> PlannerRequest:
    """Return an equivalent request: its required affinities that can only use one place are ``within`` it."""
    single = [one.suffix for one in request.groups if one.count == 1 and not (one.everything or one.per_subtree)]
    open_ended = [one.suffix for one in request.groups if one.per_subtree]

    def is_in_one_place(rule: Affinity) -> bool:
        names = {rule.primary, *rule.secondaries}
        return rule.required and not names.isdisjoint(single) and names.isdisjoint(open_ended)

    in_one = [rule for rule in request.affinity if is_in_one_place(rule)]
    within = [Within(groups=(rule.primary, *rule.secondaries), level=rule.level) for rule in in_one]
    others = tuple([rule for rule in request.affinity if rule not in in_one])
    return replace(request, affinity=others, within=(*request.within, *within))
