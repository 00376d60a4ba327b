"""The places that rules of a request name, with what is free in each: what has to become free in *one* of them.

Sums of a whole host say little where four GPUs have to be behind one switch. Only required rules count, and only as far
as sums go.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np

from placement.allocators.fair_share.reclaim import Need
from placement.candidates.serving import Serving
from placement.candidates.tree_reader import Layout
from placement.domain.places import Levels
from placement.domain.planner_request import PlannerRequest

Missing = Mapping[Need, int]
"""How much more has to be free."""

MAX_CHOICES = 64
"""The most ways to choose places for the rules on one host; beyond that no places are chosen."""


@dataclass(frozen=True, slots=True)
class PlaceRule:
    """Groups that lie in one place of a level: the index of the level, and what each group asks for."""

    level: int
    groups: Mapping[str, Mapping[str, int]]


def place_rules(request: PlannerRequest, levels: Levels) -> list[PlaceRule]:
    """Return the required rules of a request that name one place, including affinity to a single primary provider."""
    amounts, single = dict[str, dict[str, int]](), set[str]()
    for group in request.groups:
        amounts[group.suffix] = {name: amount * group.count for name, amount in group.group.resources.items()}
        if group.count == 1 and not group.everything and not group.per_subtree:
            single.add(group.suffix)
    together = [(rule.groups, rule.level) for rule in request.within if rule.required]
    together += [
        ((rule.primary, *rule.secondaries), rule.level)
        for rule in request.affinity
        if rule.required and rule.primary in single
    ]
    return [
        PlaceRule(levels.names.index(levels.named(level)), {suffix: amounts[suffix] for suffix in suffixes})
        for suffixes, level in together
        if any(amounts[suffix] for suffix in suffixes)
    ]


def places_of_rules(
    serving: Serving, rules: Sequence[PlaceRule], levels: Sequence[int | None], *, classes: Mapping[str, int]
) -> "RulePlaces":
    """Return the places of all hosts that some rules name, and what is free in them.

    Args:
        serving: the cloud, and who has which trait.
        rules: the rules.
        levels: the ids of the traits of levels that they name, by the number of the level; None for others.
        classes: the ids of the classes that they ask for.
    """
    if not rules:
        return RulePlaces((), {}, {}, {})
    providers, places = serving.columns.providers, serving.places_of(levels)
    of_root: dict[tuple[int, int], list[int]] = defaultdict(list)
    for level in {rule.level for rule in rules}:
        if (is_place := places[level]) is None:
            continue
        at = np.flatnonzero(is_place)
        for anchor, root in zip(providers.ids[at].tolist(), providers.roots[providers.trees[at]].tolist(), strict=True):
            of_root[level, root].append(anchor)
    stocks = {name: serving.columns.stock(class_id) for name, class_id in classes.items()}
    at = np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *[stock.at for stock in stocks.values()]]))
    anchors = {
        provider: tuple(dict.fromkeys([anchor for anchor in position if anchor is not None]))
        for provider, position in Layout(providers, at, places).positions.items()
    }
    free: dict[Need, int] = defaultdict(int)
    for name, stock in stocks.items():
        amounts = np.trunc(stock.capacity).astype(np.int64) - stock.used
        for provider, amount in zip(providers.ids[stock.at].tolist(), amounts.tolist(), strict=True):
            for anchor in anchors[provider]:
                free[anchor, name] += amount
    return RulePlaces(rules, anchors, of_root, free)


@dataclass(frozen=True, slots=True)
class RulePlaces:
    """The places of all hosts.

    Args:
        rules: the rules.
        anchors: provider -> the anchors of the places that it lies in.
        by_root: by level and root of a tree, the anchors of its places.
        free: what is free in each place.
    """

    rules: Sequence[PlaceRule]
    anchors: Mapping[int, tuple[int, ...]]
    by_root: Mapping[tuple[int, int], Sequence[int]]
    free: Mapping[Need, int]

    def missing(self, root: int, could_free: Callable[[Missing], bool]) -> Iterator[Missing]:
        """Yield what more has to be free in a tree, for each choice of one place per rule that could become free.

        Args:
            root: the root of the tree.
            could_free: tells whether that much could become free there; places for which it says no are not chosen.
        """
        alone = [
            [
                anchor
                for anchor in self.by_root.get((rule.level, root), ())
                if could_free(self._missing({anchor: rule.groups}))
            ]
            for rule in self.rules
        ]
        if prod(map(len, alone)) > MAX_CHOICES:
            yield {}
        else:
            yield from filter(could_free, self._together(product(*alone)))

    def _together(self, choices: Iterable[Sequence[int]]) -> Iterator[Missing]:
        """Yield what more has to be free for each choice of one place per rule, without duplicates."""
        yielded = set()
        for chosen in choices:
            by_anchor: dict[int, dict[str, Mapping[str, int]]] = defaultdict(dict)
            for rule, anchor in zip(self.rules, chosen, strict=True):
                # A group that two rules put into the same place counts once.
                by_anchor[anchor].update(rule.groups)
            missing = self._missing(by_anchor)
            if (same := frozenset(missing.items())) not in yielded:
                yielded.add(same)
                yield missing

    def _missing(self, groups_by_anchor: Mapping[int, Mapping[str, Mapping[str, int]]]) -> Missing:
        needed: dict[Need, int] = defaultdict(int)
        for anchor, groups in groups_by_anchor.items():
            for amounts in groups.values():
                for name, amount in amounts.items():
                    needed[anchor, name] += amount
        return {need: amount - self.free.get(need, 0) for need, amount in needed.items()}
