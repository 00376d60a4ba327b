"""The history checker accepts what can have happened and nothing else."""

import itertools
import random

import pytest

from tests.survival.history import LOST, NOTHING, Operation, Register, State, is_linearizable

ONE, TWO = frozenset({("host", "VCPU", 1)}), frozenset({("host", "VCPU", 2)})
CONSUMERS = ("a", "b")


def write(start, end, **changes):
    """Return a write; each change is (the generation it is based on, the resulting holdings)."""
    seen = {name: Register(generation) for name, (generation, _) in changes.items()}
    return Operation(start, end, seen, {name: shares for name, (_, shares) in changes.items()})


def read(start, end, **seen):
    return Operation(start, end, {name: Register(*register) for name, register in seen.items()})


def by_hand(history):
    """Try every order of every subset that contains all answered operations."""
    answered, lost = ([op for op in history if (op.end == LOST) is is_lost] for is_lost in (False, True))
    subsets = itertools.chain(*[itertools.combinations(lost, count) for count in range(len(lost) + 1)])
    return any(explains(order) for made in subsets for order in itertools.permutations([*answered, *made]))


def explains(order):
    state: State = {}
    for index, operation in enumerate(order):
        if any(later.end < operation.start for later in order[index + 1 :]) or not operation.is_possible(state):
            return False
        state = operation.applied(state)
    return True


def random_history(choice):
    """Return six slightly overlapping operations; some such histories are possible and some are not."""
    history = []
    for number in range(6):
        start = number + choice.random() * 2
        end = LOST if choice.random() < 0.2 else start + choice.random() * 3
        names = choice.sample(CONSUMERS, choice.choice((1, 1, 2)))
        if choice.random() < 0.4:
            seen = {name: choice.choice([(), (1, ONE), (1, TWO), (2, ONE), (2, TWO)]) for name in names[:1]}
            history.append(read(start, start + choice.random() * 3, **seen))
        else:
            changes = {name: (choice.choice((None, 1)), choice.choice((ONE, TWO, NOTHING))) for name in names}
            history.append(write(start, end, **changes))
    return history


@pytest.mark.exhaustive
def test_it_agrees_with_trying_every_order():
    choice = random.Random(7)
    verdicts = [
        (is_linearizable(history), by_hand(history)) for history in (random_history(choice) for _ in range(250))
    ]
    assert all(quick == slow for quick, slow in verdicts)
    assert len({quick for quick, _ in verdicts}) == 2
