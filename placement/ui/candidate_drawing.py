"""Drawings of a candidate on its provider trees: which nodes appear, and what each of them gives."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from placement.allocators import natural_key
from placement.domain.tree import true_roots, with_all_above
from placement.services.scores import CandidateInDetail, Trial
from placement.store.search.names import StockRow

MAX_NODES = 40
"""How many nodes that give nothing are drawn in a tree; those that give, and their ancestors, always are."""


@dataclass(frozen=True, slots=True)
class TakenAmount:
    """How much a node gives of one class, with its capacity and present usage."""

    name: str
    amount: int
    used: int
    capacity: int

    @property
    def free(self) -> int:
        """What is free before the request is served."""
        return max(0, self.capacity - self.used)


class LeftAmount(NamedTuple):
    """How much of a class a tree has left, and its capacity."""

    free: int
    capacity: int


@dataclass(slots=True)
class DrawnNode:
    """A provider in a drawing, with what it gives by class, and the suffixes of the groups it serves.

    Of its children some are drawn ``below``; it ``gives`` if it or one of these serves a group.
    """

    uuid: str
    name: str
    taken: Sequence[TakenAmount] = ()
    groups: Sequence[str] = ()
    below: "list[DrawnNode]" = field(default_factory=list)
    left_out: int = 0
    gives: bool = False


class Drawings:
    """Draws the candidates of a trial."""

    def __init__(self, trial: Trial) -> None:
        self._names = trial.names
        self._providers = trial.answer.providers
        parents = {id_: member.parent_id for id_, member in self._providers.members.items()}
        roots = true_roots(parents)  # An odd database may have a cycle.
        self._parents = {id_: None if roots[id_] is None else parent for id_, parent in parents.items()}
        self._below: dict[int, list[int]] = defaultdict(list)
        for id_ in sorted(trial.names, key=lambda id_: (natural_key(trial.names[id_].name), id_)):
            parent = self._parents[id_]
            if parent is not None:
                self._below[parent].append(id_)

    def trees(self, served: CandidateInDetail) -> list[DrawnNode]:
        """Return the trees that a candidate takes from: its own in full, if small; only nodes that give of others."""
        on_the_way = with_all_above(served.taken, self._parents)
        roots = dict.fromkeys(self._providers.members[provider].root_id for provider in served.taken)
        drawn = []
        for root in sorted(roots, key=lambda root: (root != served.root, natural_key(self._names[root].name))):
            shown = self._other_providers(root, on_the_way) if root == served.root else set()
            drawn.append(self._node(root, served, on_the_way | shown))
        return drawn

    def left_after(self, served: CandidateInDetail) -> dict[str, LeftAmount]:
        """Return how much the candidate's own tree would have left of each class taken there, and its capacity."""
        taken: Counter[str] = Counter()
        for provider, amounts in served.taken.items():
            if self._providers.members[provider].root_id == served.root:
                taken.update(amounts)
        free, capacity = Counter[str](), Counter[str]()
        for id_ in self._names:
            if self._providers.members[id_].root_id == served.root:
                for name, stock in self._stocks(id_).items():
                    free[name] += max(0, stock.capacity - int(stock.used))
                    capacity[name] += stock.capacity
        return {name: LeftAmount(free[name] - amount, capacity[name]) for name, amount in taken.items()}

    def _stocks(self, id_: int) -> dict[str, StockRow]:
        rows = self._providers.stocks.get(id_, ())
        return {self._providers.class_names[row[0]]: StockRow._make(row) for row in rows}

    def _other_providers(self, root: int, shown: set[int]) -> set[int]:
        """Return further nodes to draw, level by level, up to MAX_NODES."""
        nodes: set[int] = set()
        level = [root]
        while level:
            level = [child for id_ in level for child in self._below[id_]]
            nodes |= set([id_ for id_ in level if id_ not in shown][: MAX_NODES - len(nodes)])
        return nodes

    def _node(self, id_: int, served: CandidateInDetail, shown: set[int]) -> DrawnNode:
        below = [child for child in self._below[id_] if child in shown]
        drawn = [self._node(child, served, shown) for child in below]
        groups, stocks = served.groups.get(id_, ()), self._stocks(id_)
        return DrawnNode(
            self._names[id_].uuid,
            self._names[id_].name,
            taken=[
                TakenAmount(name, amount, int(stocks[name].used), stocks[name].capacity)
                for name, amount in sorted(served.taken.get(id_, {}).items())
            ],
            groups=groups,
            below=drawn,
            left_out=len(self._below[id_]) - len(below),
            gives=bool(groups) or any(child.gives for child in drawn),
        )


def givers(tree: DrawnNode) -> Iterator[DrawnNode]:
    """Yield the nodes of a drawing that give something, from the top."""
    if tree.groups:
        yield tree
    for child in tree.below:
        yield from givers(child)
