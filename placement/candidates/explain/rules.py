"""The rules of a planner request: what it asks of several providers at once, beyond a plain request.

A rule is identified by its condition. ``with_rules`` returns the request with only some of its rules.
"""

from collections.abc import Collection, Iterator
from dataclasses import replace

from placement.candidates.explain.conditions import Condition, ConditionKind, any_of_value, subtree_condition
from placement.domain.planner_request import Affinity, Exclusive, PlannerGroup, PlannerRequest, Within

ALL = "all"
"""The value of ``COUNT`` that stands for every matching provider."""

DISTINCT = Condition(ConditionKind.DISTINCT)


def rules_of(request: PlannerRequest) -> tuple[Condition, ...]:
    """Return the rules that candidates must not break, in the order of the explanation."""
    return tuple(dict.fromkeys(_rules(request)))


def _rules(request: PlannerRequest) -> Iterator[Condition]:
    yield from map(_device, [group for group in request.groups if group.device is not None])
    yield from map(_count, [group for group in request.groups if group.everything or group.count > 1])
    yield from map(subtree_condition, request.same_subtree)
    yield from map(_within, [rule for rule in request.within if rule.required])
    yield from map(_affinity, [rule for rule in request.affinity if rule.required])
    yield from map(_exclusive, request.exclusive)
    if request.distinct:
        yield DISTINCT


def with_rules(request: PlannerRequest, kept: Collection[Condition]) -> PlannerRequest:
    """Return a request with only some of its rules. Rules that merely rank candidates are dropped."""
    affinity = tuple([rule for rule in request.affinity if _affinity(rule) in kept and rule.required])
    secondaries = {suffix for rule in affinity for suffix in rule.secondaries}
    return replace(
        request,
        groups=tuple([_group(group, kept, is_joint=group.suffix in secondaries) for group in request.groups]),
        same_subtree=tuple([suffixes for suffixes in request.same_subtree if subtree_condition(suffixes) in kept]),
        within=tuple([rule for rule in request.within if _within(rule) in kept and rule.required]),
        affinity=affinity,
        exclusive=tuple([rule for rule in request.exclusive if _exclusive(rule) in kept]),
        distinct=DISTINCT in kept,
    )


def with_count(request: PlannerRequest, suffix: str, count: int) -> PlannerRequest:
    """Return a request that asks for ``count`` providers of a group."""
    groups = [replace(group, count=count) if group.suffix == suffix else group for group in request.groups]
    return replace(request, groups=tuple(groups))


def largest_group(request: PlannerRequest, rule: Condition) -> PlannerGroup | None:
    """Return the group of a rule that asks for the most providers; None if each asks for one."""
    of_rule = [group for group in request.groups if group.suffix in rule.groups and group.count > 1]
    return max(of_rule, key=lambda group: group.count, default=None)


def path_condition(name: str) -> Condition:
    """Return the condition that a path imposes, as a part of the request."""
    return Condition(ConditionKind.GROUP, (name,), name)


def without_path(request: PlannerRequest, name: str) -> PlannerRequest:
    """Return a request without one of its paths."""
    return replace(request, paths={other: amount for other, amount in request.paths.items() if other != name})


def _group(group: PlannerGroup, kept: Collection[Condition], *, is_joint: bool) -> PlannerGroup:
    is_counted = _count(group) in kept
    return replace(
        group,
        count=group.count if is_counted else 1,
        everything=group.everything and is_counted,
        per_subtree=group.per_subtree and is_joint,
        device=group.device if group.device is not None and _device(group) in kept else None,
    )


def _device(group: PlannerGroup) -> Condition:
    assert group.device is not None
    wanted = [any_of_value(any_of) for any_of in group.device.required]
    wanted += [f"!{name}" for name in sorted(group.device.forbidden)]
    return Condition(ConditionKind.DEVICE, (group.suffix,), ",".join(wanted))


def _count(group: PlannerGroup) -> Condition:
    return Condition(ConditionKind.COUNT, (group.suffix,), ALL if group.everything else str(group.count))


def _within(rule: Within) -> Condition:
    return Condition(ConditionKind.WITHIN, rule.groups, rule.level)


def _affinity(rule: Affinity) -> Condition:
    return Condition(ConditionKind.AFFINITY, (rule.primary, *rule.secondaries), rule.level)


def _exclusive(rule: Exclusive) -> Condition:
    return Condition(ConditionKind.EXCLUSIVE, rule.groups, rule.level)
