"""Hierarchical dominant resource fairness by its definition: every share recomputed, in fractions."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from placement.allocators import exact
from placement.allocators.fair_share.tree import Branch, Leaf, in_order, joined


@dataclass
class State:
    totals: Mapping[str, int]
    usage: dict[str, dict[str, int]]
    tasks: Mapping[str, Mapping[str, int]]
    limits: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Branch -> class -> its limit."""

    def used(self, name: str, below: str = "") -> int:
        return sum(amounts.get(name, 0) for path, amounts in self.usage.items() if path.startswith(below))

    def free(self, name: str) -> int:
        return self.totals[name] - self.used(name)

    def fits(self, path: str, task: Mapping[str, int]) -> bool:
        return all(amount <= self.free(name) for name, amount in task.items() if amount) and all(
            self.used(name, f"{branch}/") + task[name] <= most
            for branch, limit in self.limits.items()
            if path.startswith(f"{branch}/")
            for name, most in limit.items()
            if task.get(name)
        )

    def can_be_given(self, name: str) -> bool:
        """Return whether any task that asks for a class fits; otherwise the class is exhausted."""
        return any(task.get(name) and self.fits(path, task) for path, task in self.tasks.items())


@dataclass(frozen=True)
class Shown:
    path: str
    place: int
    vector: dict[str, Fraction]
    share: Fraction
    weighted: Fraction
    is_blocked: bool
    levels: tuple[tuple[bool, Fraction], ...]


def ratio(used: int | Fraction, total: int) -> Fraction:
    return Fraction(used) / total if total else Fraction(1 if used else 0)


def shares(root: Branch, state: State) -> dict[str, Shown]:
    """Return every node in the order of the tree, children before their branch."""
    open_ = [name for name in state.totals if state.can_be_given(name)]
    found: dict[str, Shown] = {}

    def visit(part: Branch | Leaf, above: str, levels: tuple[tuple[bool, Fraction], ...], place: list[int]) -> None:
        path = joined(above, part.name)
        vector, share, is_blocked = value(part, path)
        weighted = share / exact(part.weight)
        mine = (*levels, (is_blocked, weighted)) if above else ()
        found[path] = Shown(path, place[0], vector, share, weighted, is_blocked, mine)
        place[0] += 1
        for inner in in_order(part.parts) if isinstance(part, Branch) else ():
            visit(inner, path, mine, place)

    def value(part: Branch | Leaf, path: str) -> tuple[dict[str, Fraction], Fraction, bool]:
        if isinstance(part, Leaf):
            vector = {
                name: ratio(state.usage.get(path, {}).get(name, 0), total) for name, total in state.totals.items()
            }
            task = {name: amount for name, amount in state.tasks.get(path, {}).items() if amount}
            return vector, max(vector.values(), default=Fraction(0)), not task or not state.fits(path, task)
        vector, is_blocked = combined([(inner, *value(inner, joined(path, inner.name))) for inner in part.parts])
        return vector, max([vector[name] for name in open_], default=Fraction(0)), is_blocked

    def combined(parts) -> tuple[dict[str, Fraction], bool]:
        weights = {part.name: exact(part.weight) for part, *_rest in parts}
        scaled = {part.name: share / weights[part.name] for part, _vector, share, is_blocked in parts if not is_blocked}
        smallest = min(scaled.values(), default=Fraction(1))
        total = dict.fromkeys(state.totals, Fraction(0))
        for part, vector, _share, _is_blocked in parts:
            factor = smallest / (scaled[part.name] or 1) if part.name in scaled else Fraction(1)
            for name, amount in vector.items():
                total[name] += amount * factor
        return total, all(is_blocked for *_rest, is_blocked in parts)

    visit(root, "", (), [0])
    return found


def order(root: Branch, state: State) -> list[str]:
    """Return the waiting leaves, the first to be served first."""
    found = shares(root, state)
    waiting = [path for path, task in state.tasks.items() if any(task.values())]
    return sorted(waiting, key=lambda path: (found[path].levels, found[path].place))


def next_leaf(root: Branch, state: State) -> str | None:
    """Return who is served next: the first in order whose task fits."""
    return next((path for path in order(root, state) if state.fits(path, state.tasks[path])), None)


def give(state: State, path: str, sign: int = 1) -> None:
    held = state.usage.setdefault(path, {})
    for name, amount in state.tasks[path].items():
        held[name] = held.get(name, 0) + sign * amount


def fill(root: Branch, state: State) -> list[str]:
    """Serve until nothing fits; return the leaves served, task by task."""
    served = []
    while (path := next_leaf(root, state)) is not None:
        give(state, path)
        served.append(path)
    return served
