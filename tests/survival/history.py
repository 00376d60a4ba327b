"""Checks whether what clients saw can have happened, for histories of reads and writes of allocations only.

The model is a register for each consumer, with the generation shown by the API: a write names the generation of every
consumer it changes, and changes all of them or none. A history is linearizable if each operation can be given one
moment between its beginning and its end so that, in the order of these moments, the model gives the same answers. A
write whose answer was lost may have happened at any moment after its beginning, or never.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

Shares = frozenset[tuple[str, str, int]]
"""What a consumer holds: (provider, resource class, amount)."""

NOTHING: Shares = frozenset()
LOST = math.inf
"""The end of an operation whose answer never came."""


@dataclass(frozen=True, slots=True)
class Register:
    """The visible state of a consumer. One that holds nothing has no generation."""

    generation: int | None = None
    shares: Shares = NOTHING

    def after(self, shares: Shares) -> "Register":
        """Return the register after a write."""
        return Register((self.generation or 0) + 1, shares) if shares else Register()


State = dict[str, Register]


@dataclass(frozen=True, slots=True)
class Operation:
    """A read or a write as a client saw it, between two moments of one clock.

    Args:
        start: when it was sent.
        end: when it was answered, or ``LOST``.
        seen: by consumer, the register that a write was based on, or that a read returned.
        written: what the consumers hold afterwards; empty for a read.
    """

    start: float
    end: float
    seen: Mapping[str, Register]
    written: Mapping[str, Shares] = field(default_factory=dict)

    def is_possible(self, state: State) -> bool:
        """Return whether the model would give this answer in a state."""
        if not self.written:
            return all(state.get(name, Register()) == register for name, register in self.seen.items())
        return all(state.get(name, Register()).generation == before.generation for name, before in self.seen.items())

    def applied(self, state: State) -> State:
        """Return the state after this operation."""
        changed = {name: state.get(name, Register()).after(shares) for name, shares in self.written.items()}
        return {**state, **changed}


def is_linearizable(history: Sequence[Operation]) -> bool:
    """Return whether a history can have happened to consumers that all held nothing at its beginning.

    Searches depth first over the operations that may come next, as Wing and Gong did, visiting each pair of completed
    operations and state only once. The set of completed operations is represented by the first one not completed and by
    the completed ones after it, which are few, however long the history. Consumers that never occur together in an
    operation are better checked separately.
    """
    operations = sorted(history, key=lambda operation: (operation.end == LOST, operation.start))
    answered = sum([operation.end != LOST for operation in operations])
    stack: list[tuple[int, frozenset[int], State]] = [(0, frozenset(), {})]
    been: set[tuple[int, frozenset[int], frozenset[tuple[str, Register]]]] = set()
    while stack:
        first, further, state = stack.pop()
        if first >= answered:
            return True
        key = (first, further, frozenset(state.items()))
        if key in been:
            continue
        been.add(key)
        # What is pushed last is tried first: the order by time is nearly always right.
        for index in reversed(_next_ones(operations, answered, first, further)):
            if operations[index].is_possible(state):
                stack.append((*_with_done(first, further, index), operations[index].applied(state)))
    return False


def _next_ones(operations: Sequence[Operation], answered: int, first: int, further: frozenset[int]) -> list[int]:
    """Return the operations that may come next: those that began before any other remaining one had ended."""
    found, first_end = [], LOST
    for index in range(first, answered):
        if operations[index].start > first_end:
            break
        if index not in further:
            found.append(index)
            first_end = min(first_end, operations[index].end)
    lost = range(answered, len(operations))
    return found + [index for index in lost if index not in further and operations[index].start <= first_end]


def _with_done(first: int, further: frozenset[int], index: int) -> tuple[int, frozenset[int]]:
    """Return the first remaining operation, and the completed ones after it, when one more is completed."""
    done = further | {index}
    while first in done:
        done -= {first}
        first += 1
    return first, done
