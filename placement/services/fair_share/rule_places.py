"""The places that rules of a request name, with what is free in each: what has to become free in *one* of them.

Sums of a whole host say little where four GPUs have to be behind one switch. Only required rules count, and only as far
as sums go.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from placement.allocators.fair_share.tenants import Need
from placement.domain.places import Levels
from placement.domain.planner_request import PlannerRequest
from placement.services.planner.place_layout import all_places
from placement.store.connection.unit_of_work import Transaction
from placement.store.search.planner_trees import free_by_provider

Missing = Mapping[Need, int]
"""How much more has to be free."""

MAX_CHOICES = 64
"""The most ways to choose places for the rules on one host; beyond that no places are chosen."""


@dataclass(frozen=True, slots=True)
class PlaceRule:
    """Groups that lie in one place of a level: the index of the level, and what each group asks for."""

    level: int
    asked: Mapping[str, Mapping[str, int]]


def place_rules(request: PlannerRequest, levels: Levels) -> list[PlaceRule]:
    """Return the required rules of a request that name one place, including affinity to a single primary provider."""
    asked = {
        one.suffix: {name: amount * one.count for name, amount in one.group.resources.items()} for one in request.groups
    }
    single = {one.suffix for one in request.groups if one.count == 1 and not one.everything and not one.per_subtree}
    together = [(rule.groups, rule.level) for rule in request.within if rule.required]
    together += [
        ((rule.primary, *rule.secondaries), rule.level)
        for rule in request.affinity
        if rule.required and rule.primary in single
    ]
    return [
        PlaceRule(levels.names.index(levels.named(level)), {suffix: asked[suffix] for suffix in suffixes})
        for suffixes, level in together
        if any(asked[suffix] for suffix in suffixes)
    ]


def places_of_rules(tx: Transaction, rules: Sequence[PlaceRule], levels: Levels) -> "RulePlaces":
    """Read the places of all hosts that some rules name, and what is free in them."""
    if not rules:
        return RulePlaces((), {}, {}, {})
    names = {name for rule in rules for of in rule.asked.values() for name in of}
    classes = {id_: name for name, id_ in tx.names.classes.ids(tx.connection, names).items()}
    amounts = free_by_provider(tx, sorted(classes))
    traits = tx.names.traits.ids(tx.connection, {levels.traits[rule.level] for rule in rules})
    found = all_places(tx, [traits.get(trait) for trait in levels.traits])
    of_root: dict[tuple[int, int], list[int]] = defaultdict(list)
    for anchor, bits in sorted(found.level_bits.items()):
        for level in {rule.level for rule in rules if bits >> rule.level & 1}:
            of_root[level, found.root_of[anchor]].append(anchor)
    providers = {provider for provider, _class_id, _left in amounts}
    positions = found.positions_of(tx, providers, found.root_of.values())
    anchors = {
        provider: tuple(dict.fromkeys([one for one in position if one is not None]))
        for provider, position in positions.items()
    }
    free: dict[Need, int] = defaultdict(int)
    for provider, class_id, left in amounts:
        for anchor in anchors[provider]:
            free[anchor, classes[class_id]] += left
    return RulePlaces(rules, anchors, of_root, free)


class RulePlaces:
    """The places of all hosts.

    Args:
        rules: the rules.
        anchors: provider -> the anchors of the places that it lies in.
        of_root: by level and root of a tree, the anchors of its places.
        free: what is free in each place.
    """

    def __init__(
        self,
        rules: Sequence[PlaceRule],
        anchors: Mapping[int, tuple[int, ...]],
        of_root: Mapping[tuple[int, int], Sequence[int]],
        free: Mapping[Need, int],
    ) -> None:
        self._rules = rules
        self.anchors = anchors
        self._of_root = of_root
        self._free = free

    def missing(self, root: int, could_free: Callable[[Missing], bool]) -> Iterator[Missing]:
        """Yield what more has to be free in a tree, for each choice of one place per rule that could become free.

        Args:
            root: the root of the tree.
            could_free: tells whether that much could become free there; places for which it says no are not chosen.
        """
        alone = [
            [
                anchor
                for anchor in self._of_root.get((rule.level, root), ())
                if could_free(self._missing({anchor: rule.asked}))
            ]
            for rule in self._rules
        ]
        if prod(map(len, alone)) > MAX_CHOICES:
            yield {}
        else:
            yield from filter(could_free, self._together(product(*alone)))

    def _together(self, choices: Iterable[Sequence[int]]) -> Iterator[Missing]:
        """Yield what more has to be free for each choice of one place per rule, without duplicates."""
        yielded = set()
        for chosen in choices:
            asked: dict[int, dict[str, Mapping[str, int]]] = defaultdict(dict)
            for rule, anchor in zip(self._rules, chosen, strict=True):
                # A group that two rules put into the same place counts once.
                asked[anchor].update(rule.asked)
            missing = self._missing(asked)
            if (same := frozenset(missing.items())) not in yielded:
                yielded.add(same)
                yield missing

    def _missing(self, asked: Mapping[int, Mapping[str, Mapping[str, int]]]) -> Missing:
        needed: dict[Need, int] = defaultdict(int)
        for anchor, groups in asked.items():
            for of in groups.values():
                for name, amount in of.items():
                    needed[anchor, name] += amount
        return {need: amount - self._free.get(need, 0) for need, amount in needed.items()}
