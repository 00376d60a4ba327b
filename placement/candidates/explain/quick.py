"""The cause in a word, for a log line and a counter: as precise as possible without reading the cloud again."""

from collections.abc import Mapping

from placement.candidates.explain.conditions import Condition, ConditionKind, any_of_value, resources_value
from placement.candidates.explain.demands import groups_of
from placement.candidates.explain.provider_filters import forbidden_aggregates
from placement.candidates.explain.stages import stages
from placement.candidates.explain.tree_filters import LOOSE
from placement.domain.search_plan import Demand, Plan


def quick_cause(plan: Plan, emptied_by: Mapping[int, str], *, some_tree: bool, some_held: bool = False) -> Condition:
    """Return why a search found nothing.

    Args:
        plan: what was searched for.
        emptied_by: for each demand that no provider can serve, the kind of the condition that left none.
        some_tree: whether some tree had a provider for every demand.
        some_held: whether any provider was left out because its place is held exclusively.
    """
    for index, demand in enumerate(plan.demands):
        groups = groups_of(plan, index)
        if index in emptied_by:
            kind = ConditionKind(emptied_by[index])
            if kind == ConditionKind.REQUIRED and groups == LOOSE:
                kind = ConditionKind.TRAIT_PLACEMENT  # Another provider of the tree may have it.
            return Condition(kind, groups, _value(demand, kind))
        if not (demand.resources or demand.group.required or demand.group.member_of):
            return Condition(ConditionKind.EMPTY_GROUP, groups)
    if not some_tree:
        return _of_trees(plan)
    searched = [Condition(ConditionKind.HELD)] if some_held else []
    searched += [stage.condition for stage in stages(plan)]
    return searched[0] if len(searched) == 1 else Condition(ConditionKind.TOGETHER)


def _of_trees(plan: Plan) -> Condition:
    """Return the only condition on trees; if there are several, that no tree has providers for every group."""
    request = plan.request
    asked = [Condition(ConditionKind.ROOT_REQUIRED, (), name) for name in sorted(request.root_required)]
    asked += [Condition(ConditionKind.ROOT_FORBIDDEN, (), f"!{name}") for name in sorted(request.root_forbidden)]
    if plan.forbidden_root_aggregates:
        asked.append(forbidden_aggregates(plan.forbidden_root_aggregates, LOOSE))
    asked += [Condition(ConditionKind.REQUIRED, LOOSE, any_of_value(any_of)) for any_of in plan.trait_sets]
    return asked[0] if len(asked) == 1 and len(plan.demands) == 1 else Condition(ConditionKind.EVERY_GROUP)


def _value(demand: Demand, kind: ConditionKind) -> str:
    """Write all conditions of one kind in a demand as one value."""
    group = demand.group
    match kind:
        case ConditionKind.INVENTORY:
            value = ",".join(name for name, _amount in demand.resources)
        case ConditionKind.REQUIRED | ConditionKind.TRAIT_PLACEMENT | ConditionKind.MEMBER_OF:
            sets = group.member_of if kind == ConditionKind.MEMBER_OF else group.required
            value = " ".join(any_of_value(any_of) for any_of in sets)
        case ConditionKind.FORBIDDEN:
            value = "!" + ",".join(sorted(group.forbidden))
        case ConditionKind.FORBIDDEN_AGGREGATES:
            value = any_of_value(group.forbidden_aggregates, forbidden=True)
        case ConditionKind.IN_TREE:
            value = group.in_tree or ""
        case _:
            value = resources_value(demand.resources)
    return value
