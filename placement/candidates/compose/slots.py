"""The search inside one tree: every way to give each slot a provider, lazily, with dead ends pruned early.

Backtracking over the slots, the most constrained first. It is exact: the constraints refuse only what no candidate can
contain. The worst case is exponential in the number of slots, so each provider tried costs a step of the budget.

A cloud has thousands of hosts of a few models. Two trees have the same *canonical form* if the search cannot tell them
apart but by the ids of their providers: candidates are searched for once, and read off for all trees of the form.
"""

from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, chain, count, islice, product, repeat, takewhile
from math import prod
from operator import call, getitem, itemgetter
from typing import NamedTuple, TypeVar

from placement.allocators import Budget
from placement.candidates.compose.constraints import Constraint, Rows, constraints_on
from placement.domain.search_plan import LIMITS, Choice, Plan, Slot
from placement.domain.tree import Tree

CanonicalForm = tuple[object, ...]
Result = TypeVar("Result")

FEW_COMBINATIONS = 64
"""Trying up to this many combinations is faster than finding out whether any can work."""

UsefulRoom = Mapping[str, Mapping[float, float]]
"""For each contended class, the largest sum of amounts that fits into a room."""

MAX_SUMS = 10_000
"""How many sums of amounts to tell apart; beyond that, room is told apart to the unit."""


def useful_room(plan: Plan) -> UsefulRoom:
    """Return, for each contended class of a plan and any room, the largest sum of amounts that fits into it."""
    useful: dict[str, _RoundedDown] = {}
    for name in plan.contended:
        sums = {0}
        for amount in [amount for slot in plan.slots for of_class, amount in slot.resources if of_class == name]:
            sums |= {total + amount for total in sums} if len(sums) <= MAX_SUMS else set()
        useful[name] = _RoundedDown(sorted(sums) if len(sums) <= MAX_SUMS else ())
    return useful


class _RoundedDown(dict[float, float]):
    """Numbers and the largest of some sums that is no higher, on demand; the number itself if there are no sums."""

    def __init__(self, sums: Sequence[int]) -> None:
        super().__init__()
        self._sums = sums

    def __missing__(self, number: float) -> float:
        at = bisect_right(self._sums, number) - 1
        rounded = self[number] = self._sums[max(0, at)] if self._sums else number
        return rounded


class Memo(dict[Hashable, Result]):
    """Results in trees by canonical form, within one request: up to a limit, as further ones gain little."""

    def __init__(self, limit: int = 1000) -> None:
        super().__init__()
        self._limit = limit

    def remember(self, form: Hashable, result: Result) -> None:
        """Remember a result, if there is room."""
        if len(self) < self._limit:
            self[form] = result


class RequestBudget(Budget):
    """The steps of one request, of which searching one tree may take ``per_tree``."""

    __slots__ = ("per_tree",)

    def __init__(self, *, per_tree: int = LIMITS.steps_per_tree, per_request: int = LIMITS.steps_per_request) -> None:
        super().__init__(per_request)
        self.per_tree = per_tree

    def of_tree(self) -> Budget:
        """Return the budget of all searches of one tree."""
        return self.child(self.per_tree)


class SlotOrder(NamedTuple):
    """The slots in search order, and the permutation that puts a choice back into the plan's order."""

    slots: tuple[Slot, ...]
    restore: Callable[[Choice], Choice] | None


class PreparedTree(NamedTuple):
    """A tree to be searched, any number of times, but each time to the end before the next."""

    order: SlotOrder
    options: Rows
    constraints: Sequence[Constraint]

    def choices(self, budget: Budget, further: Sequence[Constraint] = ()) -> Iterator[Choice]:
        """Yield the choices that also satisfy further constraints, whose depths count slots in search order."""
        if self.are_hopeless(further):
            return iter(())
        choices = _Backtracking(self.options, [*further, *self.constraints], budget).run()
        return choices if self.order.restore is None else map(self.order.restore, choices)

    def are_hopeless(self, constraints: Sequence[Constraint]) -> bool:
        """Tell whether no choice can satisfy some constraints; a few combinations are tried as fast as that is told."""
        return prod(map(len, self.options)) > FEW_COMBINATIONS and any(
            [constraint.is_hopeless() for constraint in constraints]
        )


class SlotComposer:
    """Composes the choices of one plan, in the order of the options of trees.

    Under constraints, trees of the same canonical form share one search, which goes only as far as choices are pulled.
    """

    def __init__(self, plan: Plan, budget: RequestBudget) -> None:
        self._plan = plan
        self._budget = budget
        self._demands = [slot.demand for slot in plan.slots]
        self._is_unconstrained = plan.is_unconstrained
        # The demands whose providers together must meet each trait set.
        self._with_traits = [slot.demand for slot in plan.slots if not slot.is_granular] if plan.trait_sets else []
        self._useful = useful_room(plan)
        self._orders: dict[tuple[int, ...], SlotOrder] = {}
        self._memo: Memo[ChoicesOfForm] = Memo()

    def choices(self, tree: Tree) -> Iterator[Choice]:
        """Yield every choice of providers that serves the plan in a tree, in the order of the tree's options.

        Stop early, and mark the budget as hit, once the steps are used up.
        """
        rows = self.rows(tree)
        if self._is_unconstrained:
            steps = self._budget.of_tree()
            return takewhile(lambda _choice: steps.take(), product(*rows))
        if self.lacks_traits(tree):
            return iter(())
        form = self.form(tree)
        if (choices := self._memo.get(form)) is None:
            choices = ChoicesOfForm(self.searched(tree), rows, self._budget)
            self._memo.remember(form, choices)
        return choices.in_tree(rows, lambda: self.searched(tree))

    def rows(self, tree: Tree) -> Rows:
        """Return the options of each slot."""
        return [tree.options[demand] for demand in self._demands]

    def lacks_traits(self, tree: Tree) -> bool:
        """Tell whether the unsuffixed group's options together lack its traits: many trees do, which is told fast."""
        met, reached = tree.met.get, 0
        for demand in self._with_traits:
            for provider in tree.options[demand]:
                reached |= met(provider, 0)
        return bool(self._with_traits) and reached != (1 << len(self._plan.trait_sets)) - 1

    def form(self, tree: Tree, *, with_places: bool = False) -> CanonicalForm:
        """Return the canonical form of a tree: everything that can constrain a choice, without ids.

        Where any combination of options is a choice, that is their number; ``with_places`` also where providers lie.
        """
        plan, providers, form = self._plan, list[int](), list[object]()
        if self._is_unconstrained:
            form += map(len, tree.options)
            providers += chain.from_iterable(tree.options)
        else:
            numbers: dict[int, int] = {}
            number = numbers.setdefault
            form += [tuple([number(provider, len(numbers)) for provider in row]) for row in tree.options]
            providers += numbers
            if plan.trait_sets:
                form += [tree.met.get(provider, 0) for provider in providers]
            if plan.request.same_subtree:
                form += [_next_above(provider, tree.parents, numbers) for provider in providers]
            if not plan.request.combines_nested and tree.root_of:
                trees: dict[int, int] = {}
                roots = [tree.root_of.get(provider, tree.root) for provider in providers]
                form += [trees.setdefault(root, len(trees)) for root in roots]
            for name, useful in self._useful.items():
                form += [useful[tree.room.get((provider, name), 0)] for provider in providers]
        if with_places:
            form += [tree.places.masks.get(provider, 0) for provider in providers]
            form.append(tree.places.levels)
        return tuple(form)

    def searched(self, tree: Tree) -> Iterator[Choice]:
        """Yield every choice in a tree by searching it, whatever was found in others."""
        prepared = self.prepared(tree)
        return prepared.choices(self._budget.of_tree()) if prepared else iter(())

    def prepared(self, tree: Tree) -> PreparedTree | None:
        """Prepare a tree to be searched, perhaps several times; return None if no choice can satisfy the plan."""
        counts = tuple(map(len, tree.options))
        if (order := self._orders.get(counts)) is None:
            order = SlotOrder(self._plan.slots, None) if self._is_unconstrained else search_order(self._plan, counts)
            self._orders[counts] = order
        options = [tree.options[slot.demand] for slot in order.slots]
        prepared = PreparedTree(order, options, constraints_on(self._plan, tree, order.slots, options))
        return None if prepared.are_hopeless(prepared.constraints) else prepared


def _next_above(provider: int, parents: Mapping[int, int | None], numbers: Mapping[int, int]) -> int | None:
    """Return the number of the nearest numbered ancestor: the only ancestors that can tie providers together."""
    # Not by ``upwards``: this runs for every provider of every tree, where the cost of a generator shows.
    above = parents.get(provider)
    while above is not None and above not in numbers:
        above = parents.get(above)
    return None if above is None else numbers[above]


def search_order(plan: Plan, counts: Sequence[int]) -> SlotOrder:
    """Order the slots for the search: same_subtree sets first, each to its end, and fewest options first."""
    tied_at_all = frozenset[str]().union(*plan.request.same_subtree)
    eagerness = [(slot.suffix not in tied_at_all, counts[slot.demand]) for slot in plan.slots]
    waiting = sorted(range(len(plan.slots)), key=eagerness.__getitem__)
    order = [] if tied_at_all else waiting
    while len(order) < len(plan.slots):
        placed = {plan.slots[index].suffix for index in order}
        begun = frozenset[str]().union(*[tie for tie in plan.request.same_subtree if not tie.isdisjoint(placed)])
        following = next((index for index in waiting if plan.slots[index].suffix in begun), waiting[0])
        waiting.remove(following)
        order.append(following)
    slots = tuple(plan.slots[index] for index in order)
    if order == sorted(order):
        return SlotOrder(slots, None)
    return SlotOrder(slots, itemgetter(*(order.index(index) for index in range(len(order)))))


class _Backtracking:
    """One run over the slots of a tree: the constraints of a depth have taken exactly the providers chosen there."""

    def __init__(self, options: Rows, constraints: Sequence[Constraint], budget: Budget) -> None:
        self._options = options
        self._step = budget.take
        self._by_depth = [[c for c in constraints if depth in c.depths] for depth in range(len(options))]
        # After the last constrained slot everything combines with everything.
        constrained = [depth for depth, of_depth in enumerate(self._by_depth) if of_depth]
        self._free_from = max(constrained, default=-1) + 1

    def run(self) -> Iterator[Choice]:
        return self._extend(()) if self._free_from else self._free(())

    def _extend(self, chosen: Choice) -> Iterator[Choice]:
        depth = len(chosen)
        constraints = self._by_depth[depth]
        deeper = self._extend if depth + 1 < self._free_from else self._free
        for provider in self._options[depth]:
            if not self._step():
                return
            if _take(constraints, depth, provider):
                yield from deeper((*chosen, provider))
                for constraint in constraints:
                    constraint.give_back(depth, provider)

    def _free(self, chosen: Choice) -> Iterator[Choice]:
        depth = len(chosen)
        if depth == len(self._options):
            yield chosen
            return
        for tail in product(*self._options[depth:]):
            if not self._step():
                return
            yield chosen + tail


def _take(constraints: Sequence[Constraint], depth: int, provider: int) -> bool:
    """Offer a provider to all constraints of a depth; if one refuses, undo those that accepted before it."""
    for index, constraint in enumerate(constraints):
        if not constraint.take(depth, provider):
            for accepted in constraints[:index]:
                accepted.give_back(depth, provider)
            return False
    return True


MAX_REMEMBERED = 1000
"""The most candidates to remember of a form. Each tree searches for further ones itself."""


class ChoicesOfForm:
    """The candidates of equivalent trees, composed in one of them only as far as any is asked for.

    A candidate is remembered by which option of each slot it takes: another tree's has its own options there. ``rows``
    are the options of each slot in the first tree.
    """

    def __init__(self, choices: Iterator[Choice] | list[Choice], rows: Rows, budget: RequestBudget) -> None:
        starts = accumulate(map(len, rows), initial=0)
        self._places = [dict(zip(row, count(start), strict=False)) for row, start in zip(rows, starts, strict=False)]
        self._is_whole = isinstance(choices, list)
        self._readers = [*map(self._reader, choices)] if isinstance(choices, list) else []
        """For each candidate, in order, a function that reads it off the options of all slots, one after the other."""
        self._more = map(self._reader, choices)
        self._budget = budget

    def _reader(self, choice: Choice) -> Callable[[Choice], Choice]:
        places = tuple(map(getitem, self._places, choice))
        # A slice, so that the result is a tuple, too.
        return itemgetter(*places) if len(places) > 1 else itemgetter(slice(places[0], places[0] + 1))

    def in_tree(self, rows: Rows, search: Callable[[], Iterable[Choice]]) -> Iterator[Choice]:
        """Yield the candidates of one of the trees: those found so far, at a step each, then those to be composed.

        ``search`` composes in the tree from the beginning.
        """
        options = tuple(chain.from_iterable(rows))
        if not self._is_whole:
            return self._further(options, search)
        affordable = self._readers[: self._budget.remaining]
        self._budget.take(len(self._readers))
        return map(call, affordable, repeat(options))

    def _further(self, options: Choice, search: Callable[[], Iterable[Choice]]) -> Iterator[Choice]:
        number = 0
        while True:
            if number < len(self._readers):
                if not self._budget.take():
                    return
            elif number == MAX_REMEMBERED:
                break
            elif (reader := next(self._more, None)) is not None:
                self._readers.append(reader)
            else:
                self._is_whole = not self._budget.was_hit  # Exhausted, unless cut off.
                break
            yield self._readers[number](options)
            number += 1
        if not self._is_whole:
            yield from islice(search(), number, None)
