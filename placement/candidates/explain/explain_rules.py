"""Explains the rules of a planner request: what each rule leaves, and which one left nothing."""

from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from placement.candidates.explain.conditions import Condition, ConditionKind
from placement.candidates.explain.explanation import Example, Explanation, NearMiss, Remainder, Shortfall
from placement.candidates.explain.rule_search import RuleSearch
from placement.candidates.explain.rules import largest_group, rules_of, with_count, with_rules
from placement.domain.planner_request import PlannerRequest

MAX_EXAMPLES = 5

FREE_PLACES = Condition(ConditionKind.HELD)
"""Needed by every request, though none asks for it: places that nobody else holds exclusively."""

OF_ROOM = (ConditionKind.DEVICE, ConditionKind.COUNT)
"""Rules that ask only for room, perhaps on certain devices. They come first in a request."""

NESTED = Condition(ConditionKind.PATHS)
"""All amounts of ``paths``, nested as their names say."""


def explained_with_rules(plain: Explanation, request: PlannerRequest, search: RuleSearch) -> Explanation:
    """Extend an explanation of what a request asks of single providers by its rules.

    Args:
        plain: the explanation of the request without its rules, which left some trees.
        request: the request.
        search: searches the trees that have a provider for each group.
    """
    rules = rules_of(request)
    # Asked first, because what serves all rules serves each subset of them.
    undecided = search.serving(with_rules(request, rules)).undecided
    steps = list(_steps(request, rules, search))
    # Places are rarely held, so mention that only where it matters.
    shown = steps[1:] if steps[0] == Remainder(FREE_PLACES, None, plain.found) else steps
    explained = replace(plain, trees=(*plain.trees, *shown), complete=plain.complete and not undecided)
    emptied = next((number for number, step in enumerate(steps) if not step.trees), None)
    if emptied is None:
        return explained
    cause = steps[emptied].condition
    return replace(
        explained,
        cause=cause,
        shortfall=_shortfall(with_rules(request, rules[:emptied]), cause, search),
        near_misses=tuple(_near_misses(request, rules, search)),
    )


def _steps(request: PlannerRequest, rules: Sequence[Condition], search: RuleSearch) -> Iterator[Remainder]:
    """Yield how many trees are left after each rule. Trees that the search cannot decide count as left."""
    conditions = (NESTED if request.paths else FREE_PLACES, *rules)
    requests = [with_rules(request, conditions[: number + 1]) for number in range(len(conditions))]
    for number in _settling_first([rule.kind in OF_ROOM for rule in rules]):
        search.serving(requests[number])
    left = search.roots
    for condition, ruled in zip(conditions, requests, strict=True):
        left = left & search.serving(ruled).possible
        yield Remainder(condition, None, len(left))


def _settling_first(is_of_room: Sequence[bool]) -> Iterator[int]:
    """Yield the numbers of leading rules to ask about, ordered so that one answer settles most of the others.

    A tree that serves some rules also serves fewer; one that does not is not asked about more. That pays for rules
    decided by room, which come first. Each other rule is asked only of trees that meet all rules before it.

    >>> [*_settling_first([True, True, True, True, False])]
    [0, 4, 2, 1, 3]
    """
    yield 0
    last = next((number for number, is_one in enumerate(is_of_room) if not is_one), len(is_of_room))
    if last:
        yield last
        yield from _middles(1, last)


def _middles(first: int, end: int) -> Iterator[int]:
    if first < end:
        middle = (first + end) // 2
        yield middle
        yield from _middles(first, middle)
        yield from _middles(middle + 1, end)


def _near_misses(request: PlannerRequest, rules: Collection[Condition], search: RuleSearch) -> Iterator[NearMiss]:
    """Yield the rules and paths whose removal alone would give candidates, those that help most trees first."""
    kept = with_rules(request, rules)
    less = [(rule, with_rules(request, [one for one in rules if one != rule])) for rule in rules]
    less += [(_path(name), _without_path(kept, name)) for name in request.paths if len(request.paths) > 1]
    found = []
    for condition, without in less:
        serving = search.serving(without)
        if serving.trees:
            shown = tuple([Example(root) for root in sorted(serving.trees)[:MAX_EXAMPLES]])
            shortfall = _shortfall(kept, condition, search)
            found.append(NearMiss(condition, len(serving.trees), not serving.undecided, shown, shortfall=shortfall))
    yield from sorted(found, key=lambda near_miss: -near_miss.trees)


def _path(name: str) -> Condition:
    return Condition(ConditionKind.GROUP, (name,), name)


def _without_path(request: PlannerRequest, name: str) -> PlannerRequest:
    return replace(request, paths={other: amount for other, amount in request.paths.items() if other != name})


def _shortfall(request: PlannerRequest, rule: Condition, search: RuleSearch) -> Shortfall | None:
    """Return how many providers one tree could give to a rule's largest group, all else unchanged.

    None if the rule's groups want one provider each, or if no tree has even one.
    """
    group = largest_group(request, rule)
    if group is None:
        return None
    # A tree with room for some number has room for fewer.
    counts = range(group.count - 1, 0, -1)
    least_less = bisect_left(counts, 1, key=lambda count: search.is_served(with_count(request, group.suffix, count)))
    most = group.count - 1 - least_less
    return Shortfall(group.suffix, asked=group.count, most=most) if most else None
