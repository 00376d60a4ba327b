"""Explains a planner request: what its rules leave of what single providers can serve, and what would help.

Rules are what it asks of several providers at once, beyond a plain request. A rule is identified by its condition.
``with_rules`` returns the request with only some of its rules, and the planner's search tells which trees serve that.
Of hierarchical names, one may be left out, and there may be fewer of those that are alike.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import NamedTuple

from placement.allocators import Budget
from placement.allocators.bundle_packing import most_that_fit
from placement.allocators.group import NamedGroup, partition
from placement.candidates.compose.proposals import ProposalComposer
from placement.candidates.explain.explain import (
    MAX_EXAMPLES,
    counted,
    explained,
    hints,
    near_conditions,
    searched_steps,
)
from placement.candidates.explain.explanation import (
    Condition,
    ConditionKind,
    Example,
    Explanation,
    NearMiss,
    Remainder,
    Shortfall,
    any_of_value,
    subtree_condition,
)
from placement.candidates.explain.masks import CloudMasks, ConditionMasks
from placement.candidates.explain.partial_search import (
    AlikeTrees,
    SearchInTrees,
    ServingTrees,
    serving_trees,
    with_traits_apart,
    without,
)
from placement.candidates.planner.planner_trees import SeenCloud
from placement.cloud.providers import Flags, Ints
from placement.domain.device_types import is_enumerated
from placement.domain.planner_request import Affinity, ContainerPaths, Exclusive, PlannerGroup, PlannerRequest, Within
from placement.domain.search_plan import Plan
from placement.domain.tree import PlannerTree, Tree

FREE_PLACES = Condition(ConditionKind.HELD)
"""Needed by every request, though none asks for it: places that nobody else holds exclusively."""

NESTED = Condition(ConditionKind.PATHS)
"""All amounts of ``paths``, nested as their names say."""

OF_ROOTS = (ConditionKind.ROOT_REQUIRED, ConditionKind.ROOT_FORBIDDEN)

ALL = "all"
"""The value of ``COUNT`` that stands for every matching provider."""

DISTINCT = Condition(ConditionKind.DISTINCT)
TRANSLATE = Condition(ConditionKind.TRANSLATE)


class RuleSearches(NamedTuple):
    """What it takes to search for a planner request, whichever of its rules are left out.

    ``composer_for`` returns the composer of a request with its plan; one of paths has a plan of its own. ``details_of``
    returns trees in detail, ``more_columns`` tell providers apart, and ``budget`` has the steps of all searches.
    """

    composer_for: Callable[[PlannerRequest, Plan], ProposalComposer]
    details_of: Callable[[Sequence[Tree]], Sequence[PlannerTree]]
    more_columns: Sequence[Ints | Flags]
    budget: Budget

    def search(self, request: PlannerRequest, plan: Plan) -> SearchInTrees:
        """Return the search for candidates of a request with its plan."""
        composer = self.composer_for(request, plan)

        def verdicts_of(trees: Sequence[Tree]) -> Sequence[bool | None]:
            hopeful = [tree for tree in trees if not (composer.is_hopeless(tree) or composer.lacks_room(tree))]
            verdicts: dict[int, bool | None] = {}
            for tree, details in zip(hopeful, self.details_of(hopeful), strict=True):
                verdicts[tree.root] = None if self.budget.is_used_up else composer.serves(tree, details, self.budget)
            return [verdicts.get(tree.root, False) for tree in trees]

        return verdicts_of


def distinguishing_columns(
    cloud: SeenCloud, classes: Collection[str] | None, *, in_use: Flags | None
) -> list[Ints | Flags]:
    """Return what tells providers apart to the planner besides what they serve, and whether anything is in use."""
    serving = cloud.reader.serving
    columns = [serving.sets.with_trait(trait_id) for trait_id in cloud.trait_names]
    columns += [] if in_use is None else [in_use]
    return [*columns, *serving.columns.stock_columns(cloud.classes(classes))]


def explain_request(request: PlannerRequest, plan: Plan, masks: ConditionMasks, searches: RuleSearches) -> Explanation:
    """Explain why a planner request, given its plan, has no candidates, or say in how many trees it has some."""
    if request.init_containers:
        # These run in turn, so what they ask for does not add up.
        plan = replace(plan, contended=())
    return _RulesExplained(request, with_traits_apart(plan), masks, searches).explanation()


class _RulesExplained:
    """Explains one request; see ``explain_request``."""

    def __init__(self, request: PlannerRequest, plan: Plan, masks: ConditionMasks, searches: RuleSearches) -> None:
        self._rules = rules_of(request)
        self._request = with_rules(request, self._rules)
        """The request without what merely ranks candidates."""
        self._plan = plan
        self._searches = searches
        self._cloud = CloudMasks(plan, masks)
        self._alike = AlikeTrees(self._cloud, more_columns=searches.more_columns, nested=True)

    def explanation(self) -> Explanation:
        plain, remaining = counted(self._alike)
        is_ruled = bool(self._rules or self._request.paths)
        if plain.cause is None:
            return self._with_rules(plain, remaining)
        missed = self._near_misses() if is_ruled else ()
        if missed:
            return replace(plain, near_misses=missed, hints=tuple(hints(self._cloud)))
        # Nothing helps alone; but what single providers lack may be worth knowing.
        explanation = explained(self._alike, plain)
        aside = tuple([replace(near_miss, rules_aside=is_ruled) for near_miss in explanation.near_misses])
        return replace(explanation, near_misses=aside)

    def _with_rules(self, plain: Explanation, remaining: Flags) -> Explanation:
        """Extend an explanation of what single providers are asked for, which left some trees, by the rules."""
        conditions = (NESTED if self._request.paths else FREE_PLACES, *self._rules)
        requests = [with_rules(self._request, conditions[: number + 1]) for number in range(len(conditions))]
        searches = [self._searches.search(request, self._plan) for request in requests]
        steps, _remaining, undecided = searched_steps(self._alike, zip(conditions, searches, strict=True), remaining)
        # Places are rarely held, so mention that only where it matters.
        shown = steps[1:] if steps[0] == Remainder(FREE_PLACES, None, plain.trees_with_candidates) else steps
        ruled = replace(plain, trees=(*plain.trees, *shown), complete=plain.complete and not undecided)
        emptied = next((number for number, step in enumerate(steps) if not step.trees), None)
        if emptied is None:
            return ruled
        cause = steps[emptied].condition
        shortfall = self._shortfall(with_rules(self._request, self._rules[:emptied]), cause)
        return replace(ruled, cause=cause, shortfall=shortfall, near_misses=self._near_misses())

    def _near_misses(self) -> tuple[NearMiss, ...]:
        """Return the rules, paths and conditions whose removal alone would give candidates."""
        missed = list[NearMiss]()
        for rule in self._rules:
            less = with_rules(self._request, [kept for kept in self._rules if kept != rule])
            missed += self._near_miss(rule, self._served(less, self._cloud.trees))
        amounts = {name for name in self._request.paths if not is_enumerated(name.rpartition("/")[2])}
        for name in [name for name in self._request.paths if amounts - {name}]:
            condition = Condition(ConditionKind.GROUP, (name,), name)
            other_paths = {kept: amount for kept, amount in self._request.paths.items() if kept != name}
            missed += self._near_miss(condition, self._served_paths(replace(self._request, paths=other_paths)))
        # Of paths, no condition on what single providers serve can be left out alone.
        of_conditions = near_conditions(
            self._alike,
            self._searches.budget,
            lambda condition: self._searches.search(
                replace(self._request, isolate=self._request.isolate and condition.kind != ConditionKind.GROUP_POLICY),
                without(self._plan, condition),
            ),
            is_removable=lambda condition: condition.kind in OF_ROOTS or not self._request.paths,
        )
        return tuple(sorted([*missed, *of_conditions], key=attrgetter("trees"), reverse=True))

    def _near_miss(self, condition: Condition, served: ServingTrees) -> Iterator[NearMiss]:
        if len(served.trees):
            shown = [Example(root) for root in self._cloud.providers.roots[served.trees[:MAX_EXAMPLES]].tolist()]
            shortfall = self._shortfall(self._request, condition)
            yield NearMiss(condition, len(served.trees), not len(served.undecided), tuple(shown), shortfall=shortfall)

    def _shortfall(self, request: PlannerRequest, rule: Condition) -> Shortfall | None:
        """Return how many providers one tree could give to a rule's largest group; None if one each, or if none.

        Of paths, it is the groups of which the fewest are missing.
        """
        if rule in (NESTED, DISTINCT, TRANSLATE):
            containers = enumerate(request.all_paths())
            alike = [_alike_in(partition(paths), prefix, number) for number, (prefix, paths, _initial) in containers]
            lacking = [self._shortfall_of_paths(request, parts) for of_container in alike for parts in of_container]
            return min(filter(None, lacking), key=lambda lack: lack.requested - lack.available, default=None)
        of_rule = [group for group in request.groups if group.suffix in rule.groups and group.count > 1]
        group = max(of_rule, key=lambda group: group.count, default=None)
        if group is None:
            return None

        def is_served(count: int) -> bool:
            fewer = [replace(listed, count=count) if listed is group else listed for listed in request.groups]
            return bool(len(self._served(replace(request, groups=tuple(fewer)), self._cloud.trees).trees))

        # A tree with room for some number has room for fewer.
        available = most_that_fit(group.count - 1, is_served)
        return Shortfall(group.suffix, requested=group.count, available=available) if available else None

    def _shortfall_of_paths(self, request: PlannerRequest, parts: "AlikeParts") -> Shortfall | None:
        def is_served(count: int) -> bool:
            return bool(len(self._served_paths(with_fewer(request, parts, count)).trees))

        available = most_that_fit(len(parts.labels) - 1, is_served)
        is_known = available and not self._searches.budget.was_hit
        return Shortfall(parts.name, requested=len(parts.labels), available=available) if is_known else None

    def _served(self, request: PlannerRequest, among: Flags) -> ServingTrees:
        return serving_trees(self._alike, self._searches.search(request, self._plan), among)

    def _served_paths(self, request: PlannerRequest) -> ServingTrees:
        plan = self._searches.composer_for(request, self._plan).plan
        cloud = CloudMasks(plan, self._cloud.masks)
        alike = AlikeTrees(cloud, more_columns=self._searches.more_columns, nested=True)
        return serving_trees(alike, self._searches.search(request, plan), cloud.trees)


def rules_of(request: PlannerRequest) -> tuple[Condition, ...]:
    """Return the rules that candidates must not break, in the order of the explanation."""
    rules = [
        *map(_device, [group for group in request.groups if group.device is not None]),
        *map(_count, [group for group in request.groups if group.everything or group.count > 1]),
        *map(subtree_condition, request.same_subtree),
        *map(_of_places, [rule for rule in request.within if rule.required]),
        *map(_of_places, [rule for rule in request.affinity if rule.required]),
        *map(_of_places, request.exclusive),
        *([DISTINCT] if request.distinct else []),
        *([TRANSLATE] if request.translate else []),
    ]
    return tuple(dict.fromkeys(rules))


def with_rules(request: PlannerRequest, kept: Collection[Condition]) -> PlannerRequest:
    """Return a request with only some of its rules. Rules that merely rank candidates are dropped."""
    affinity = tuple([rule for rule in request.affinity if _of_places(rule) in kept and rule.required])
    secondaries = {suffix for rule in affinity for suffix in rule.secondaries}
    return replace(
        request,
        groups=tuple([_group(group, kept, is_joint=group.suffix in secondaries) for group in request.groups]),
        same_subtree=tuple([suffixes for suffixes in request.same_subtree if subtree_condition(suffixes) in kept]),
        within=tuple([rule for rule in request.within if _of_places(rule) in kept and rule.required]),
        affinity=affinity,
        exclusive=tuple([rule for rule in request.exclusive if _of_places(rule) in kept]),
        distinct=DISTINCT in kept,
        translate=TRANSLATE in kept,
    )


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
    conditions = [any_of_value(any_of) for any_of in group.device.required]
    conditions += [f"!{name}" for name in sorted(group.device.forbidden)]
    return Condition(ConditionKind.DEVICE, (group.suffix,), ",".join(conditions))


def _count(group: PlannerGroup) -> Condition:
    return Condition(ConditionKind.COUNT, (group.suffix,), ALL if group.everything else str(group.count))


def _of_places(rule: Within | Affinity | Exclusive) -> Condition:
    if isinstance(rule, Affinity):
        return Condition(ConditionKind.AFFINITY, (rule.primary, *rule.secondaries), rule.level)
    kind = ConditionKind.WITHIN if isinstance(rule, Within) else ConditionKind.EXCLUSIVE
    return Condition(kind, rule.groups, rule.level)


class AlikeParts(NamedTuple):
    """Groups beside each other in the paths of a container that ask for the same, by how their names begin."""

    container: int
    name: str
    labels: Sequence[str]


def _alike_in(group: NamedGroup, name: str, container: int) -> Iterator[AlikeParts]:
    """Yield the groups inside one that ask for the same as another one beside them, the outermost first."""
    kinds: dict[tuple[str, object], list[str]] = defaultdict(list)
    for (level, label), inner in group.inside.items():
        kinds[level, _form(inner)].append(label)
    for (level, _of_each), labels in kinds.items():
        if len(labels) > 1:
            yield AlikeParts(container, f"{name}/{level}".lstrip("/"), labels)
    for (level, label), inner in group.inside.items():
        yield from _alike_in(inner, f"{name}/{level}/{label}".lstrip("/"), container)


def _form(group: NamedGroup) -> tuple[object, ...]:
    """Return everything about a group except labels."""
    inside = [(level, _form(inner)) for (level, _label), inner in group.inside.items()]
    return tuple(sorted(group.base.items())), tuple(sorted(inside))


def with_fewer(request: PlannerRequest, parts: AlikeParts, count: int) -> PlannerRequest:
    """Return a request with ``count`` of some parts."""
    containers = [*request.all_paths()]
    prefix, paths, _is_initial = containers[parts.container]
    left_out = tuple([f"{parts.name}/{label}/".removeprefix(f"{prefix}/") for label in parts.labels[count:]])
    kept = {name: amount for name, amount in paths.items() if not name.startswith(left_out)}
    containers[parts.container] = ContainerPaths(prefix, kept)
    own_paths, *in_containers = [container.paths for container in containers]
    end = len(request.containers)
    running, initial = tuple(in_containers[:end]), tuple(in_containers[end:])
    return replace(request, paths=own_paths, containers=running, init_containers=initial)
