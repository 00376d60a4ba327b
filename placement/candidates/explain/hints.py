"""What those who are new to Placement get wrong, seen in a request that has no candidates."""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet

from placement.candidates.explain.case import Case
from placement.candidates.explain.conditions import Condition, Sort, any_of_value
from placement.candidates.explain.demands import Judged
from placement.candidates.explain.explanation import Hint, Lesson
from placement.candidates.explain.tree_rules import LOOSE
from placement.domain.candidate_request import RequestGroup
from placement.domain.facts import Facts


def hints(case: Case) -> Iterator[Hint]:
    """Yield what is asked for and nobody has, then what sits elsewhere in the tree than it is looked for."""
    yield from dict.fromkeys(_nobody(case))
    for demand in case.demands:
        yield from _elsewhere(case, demand)
    yield from _apart(case)


def _nobody(case: Case) -> Iterator[Hint]:
    facts = case.facts
    for demand in case.demands:
        for name, _amount in demand.kind.resources:
            if not facts.stocks.get(name):
                yield Hint(Lesson.NO_INVENTORY, Condition(Sort.INVENTORY, demand.groups, name))
        yield from _without_holder(facts, demand)
    for rule in case.rules:
        if rule.condition.sort == Sort.ROOT_REQUIRED and not facts.owners.get(rule.condition.value):
            yield Hint(Lesson.NO_OWNER, rule.condition)


def _without_holder(facts: Facts, demand: Judged) -> Iterator[Hint]:
    group = demand.kind.group
    for sort, any_of, havers in _wanted(facts, group):
        if not havers:
            lesson = Lesson.NO_OWNER if sort == Sort.REQUIRED else Lesson.NO_MEMBER
            yield Hint(lesson, Condition(sort, demand.groups, any_of_value(any_of)))
    if group.in_tree is not None and group.in_tree not in facts.roots:
        yield Hint(Lesson.NO_TREE, Condition(Sort.IN_TREE, demand.groups, group.in_tree))


def _wanted(facts: Facts, group: RequestGroup) -> list[tuple[Sort, frozenset[str], AbstractSet[int]]]:
    """Return the traits and aggregates that a group wants, each with the providers that have it."""
    required = [(Sort.REQUIRED, any_of, facts.owners_of_any(any_of)) for any_of in group.required]
    return required + [(Sort.MEMBER_OF, any_of, facts.members_of_any(any_of)) for any_of in group.member_of]


def _elsewhere(case: Case, demand: Judged) -> Iterator[Hint]:
    """Yield traits and aggregates that another provider of the tree has than the one that could serve."""
    for sort, any_of, havers in _wanted(case.facts, demand.kind.group):
        condition = Condition(sort, demand.groups, any_of_value(any_of))
        lesson = Lesson.TRAIT_ELSEWHERE if sort == Sort.REQUIRED else Lesson.AGGREGATE_DOES_NOT_SPAN
        # The unsuffixed group has no rule for its traits: they are looked for together, below.
        lacking = demand.own.failing_only.get(condition, frozenset())
        yield from _told(case.facts, lesson, condition, lacking=lacking, havers=havers)


def _apart(case: Case) -> Iterator[Hint]:
    """Yield traits of the unsuffixed group that no provider with its resources has."""
    loose = [demand for demand in case.demands if demand.groups == LOOSE]
    serving = frozenset[int]().union(*[demand.own.fitting | demand.shared.fitting for demand in loose])
    for any_of in case.plan.trait_sets:
        havers = case.facts.owners_of_any(any_of)
        helped = case.facts.trees_with(serving & havers)
        lacking = {provider for provider in serving if case.facts.home[provider] not in helped}
        condition = Condition(Sort.REQUIRED, LOOSE, any_of_value(any_of))
        yield from _told(case.facts, Lesson.TRAIT_ELSEWHERE, condition, lacking=lacking, havers=havers)


def _told(
    facts: Facts, lesson: Lesson, condition: Condition, *, lacking: AbstractSet[int], havers: AbstractSet[int]
) -> Iterator[Hint]:
    """Yield a hint if some tree has both somebody who could serve but for a condition, and somebody who meets it."""
    if not (lacking and havers):
        return
    trees = facts.trees_with(lacking) & facts.trees_with(havers)
    if trees:
        first = min(trees)
        here = min(provider for provider in lacking if facts.home[provider] == first)
        there = min(provider for provider in havers if facts.home[provider] == first)
        yield Hint(lesson, condition, len(trees), here, there)
