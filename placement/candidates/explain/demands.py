"""Who can serve each demand of a plan, and who fails one condition only."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import reduce
from operator import or_

from placement.candidates.explain.conditions import Condition
from placement.candidates.explain.explanation import Demand, Step
from placement.candidates.explain.rules import Rule, RuleBook, Way
from placement.domain.facts import Facts
from placement.domain.search_plan import Kind, Plan


class Sifted:
    """Providers that meet all rules, and for each rule those that fail it alone.

    ``trees_of`` are the roots of the trees that each of them can serve in.
    """

    def __init__(
        self,
        fitting: AbstractSet[int],
        failing_only: Mapping[Condition, AbstractSet[int]],
        trees_of: Callable[[int], Iterable[int]],
    ) -> None:
        self.fitting = fitting
        self.failing_only = failing_only
        self._trees_of = trees_of
        self._by_tree: dict[Condition | None, Mapping[int, list[int]]] = {}

    def options(self, without: Condition | None) -> AbstractSet[int]:
        """Return who fits when a condition is left out."""
        more = self.failing_only.get(without) if without else None
        return self.fitting | more if more else self.fitting

    def options_in(self, root: int, without: Condition | None) -> list[int]:
        """Return the same of one tree."""
        found = self._in(root, None)
        return found + self._in(root, without) if without in self.failing_only else found

    def _in(self, root: int, failing: Condition | None) -> list[int]:
        by_tree = self._by_tree.get(failing)
        if by_tree is None:
            grouped: dict[int, list[int]] = defaultdict(list)
            for provider in sorted(self.fitting if failing is None else self.failing_only[failing]):
                for tree in self._trees_of(provider):
                    grouped[tree].append(provider)
            by_tree = self._by_tree[failing] = dict(grouped)
        return by_tree.get(root, [])


@dataclass(slots=True)
class Judged:
    """A demand with the providers of its own tree that can serve it (``own``), and those that share (``shared``)."""

    kind: Kind
    groups: tuple[str, ...]
    conditions: tuple[Condition, ...]
    own: Sifted
    shared: Sifted
    steps: tuple[Step, ...]

    @property
    def described(self) -> Demand:
        """What an explanation says of it."""
        return Demand(self.groups, self.kind.resources, self.steps)

    def options_in(self, root: int, without: Condition | None) -> list[int]:
        """Return who can serve it in a tree if a condition is left out, ascending."""
        own = self.own.options_in(root, without)
        shared = self.shared.options_in(root, without)
        return sorted({*own, *shared}) if shared else sorted(own)


class Judge:
    """Judges demands in one cloud, each once."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._book = RuleBook(facts)
        self._known: dict[tuple[object, ...], Judged] = {}

    def demands(self, plan: Plan) -> list[Judged]:
        """Return the demands of a plan, in the order of its kinds."""
        return [self._demand(kind, groups_of(plan, index)) for index, kind in enumerate(plan.kinds)]

    def _demand(self, kind: Kind, groups: tuple[str, ...]) -> Judged:
        key = (groups, kind.identity)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._judged(kind, groups)
        return found

    def _judged(self, kind: Kind, groups: tuple[str, ...]) -> Judged:
        book, facts = self._book, self._facts
        ways = book.ways(kind)
        rules = [list(book.rules(kind, groups, way)) for way in ways]
        own = [_Sieve(book.base(kind, way)) for way in ways if way is not Way.SHARED]
        shared = [_Sieve(book.base(kind, way)) for way in ways if way is Way.SHARED]
        steps = tuple(self._steps(own, shared, zip(*rules, strict=True)))
        return Judged(
            kind,
            groups,
            tuple(rule.condition for rule in rules[0]),
            _sifted(own, lambda provider: (facts.home[provider],)),
            _sifted(shared, lambda provider: facts.shares[provider]),
            steps,
        )

    def _steps(
        self, own: Sequence["_Sieve"], shared: Sequence["_Sieve"], rules: Iterable[Sequence[Rule]]
    ) -> Iterator[Step]:
        counted: tuple[int, int] | None = None
        for rule_of_each in rules:
            refused = [sieve.apply(rule) for sieve, rule in zip((*own, *shared), rule_of_each, strict=True)]
            if counted is None or any(refused):
                in_own, as_shared = _union([sieve.left for sieve in own]), _union([sieve.left for sieve in shared])
                counted = len(in_own | as_shared), len(self._facts.trees_with(in_own, as_shared))
            yield Step(rule_of_each[0].condition, *counted)


class _Sieve:
    """Applies rules one after the other. O(rules x providers that failed at most once), most of it inside sets."""

    def __init__(self, base: AbstractSet[int]) -> None:
        self.left = base
        self.failing_only: dict[Condition, AbstractSet[int]] = {}

    def apply(self, rule: Rule) -> bool:
        """Apply a rule; tell whether it refused anybody who was left."""
        for condition, providers in self.failing_only.items():
            if providers:
                self.failing_only[condition] = providers - rule.refused(providers)
        refused = rule.refused(self.left)
        self.failing_only[rule.condition] = refused
        if refused:
            self.left = self.left - refused
        return bool(refused)


def _sifted(sieves: Sequence["_Sieve"], trees_of: Callable[[int], Iterable[int]]) -> Sifted:
    """Return who came through any of some sieves, which had the same conditions, and who would without one of these."""
    fitting = _union([sieve.left for sieve in sieves])
    failing_only = {
        condition: found
        for condition in (sieves[0].failing_only if sieves else ())
        if (found := _union([sieve.failing_only[condition] for sieve in sieves]) - fitting)
    }
    return Sifted(fitting, failing_only, trees_of)


def _union(sets: Sequence[AbstractSet[int]]) -> AbstractSet[int]:
    return reduce(or_, sets) if sets else frozenset()


def groups_of(plan: Plan, kind: int) -> tuple[str, ...]:
    """Return the suffixes of the groups that a kind of demand comes from."""
    return tuple(dict.fromkeys(slot.suffix for slot in plan.slots if slot.kind == kind))
