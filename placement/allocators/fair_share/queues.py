"""The operator's view of a fair-share tree: paths of queues with weights, and the queue each member belongs to."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from placement.allocators import Number, exact
from placement.allocators.fair_share.tree import SEPARATOR, Amounts, Branch, Leaf, joined, way

ROOT, DEFAULT_QUEUE = "root", "default"


class Contradiction(ValueError):
    """Two queues contradict each other; ``first`` and ``second`` are their indexes in the list."""

    def __init__(self, first: int, second: int, text: str) -> None:
        super().__init__(text)
        self.first = first
        self.second = second


@dataclass(frozen=True, slots=True)
class QueueCapacity:
    """A queue's settings besides its weight, by class; see ``Branch`` for what each means."""

    guarantee: Amounts = field(default_factory=dict)
    deserved: Amounts = field(default_factory=dict)
    limit: Amounts = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Queue:
    """One line of an operator's configuration.

    Args:
        path: the names from the root to the queue, joined by slashes.
        weights: one for each name, None where unspecified. The root's weight has no meaning.
        members: who belongs to the queue. None for a line that only gives weights to a branch; it still defines a queue
            if nothing lies below it.
        capacity: the queue's other settings.
    """

    path: str
    weights: tuple[Number | None, ...] = ()
    members: tuple[str, ...] | None = None
    capacity: QueueCapacity = QueueCapacity()


@dataclass(frozen=True, slots=True)
class QueueTree:
    """All queues, validated: by path the weights, parents first, and the other settings; and who is where.

    ``members`` has the path of each member's queue, ``default`` that of everybody else's.
    """

    root: str
    weights: Mapping[str, Number]
    members: Mapping[str, str] = field(default_factory=dict)
    default: str = ""
    capacities: Mapping[str, QueueCapacity] = field(default_factory=dict)

    def path_of(self, member: str) -> str:
        """Return the path of a leaf."""
        return joined(self.queue_of(member), _quoted(member))

    def queue_of(self, member: str) -> str:
        """Return the path of a member's queue."""
        return self.members.get(member, self.default)

    def tree(self, members: Iterable[str]) -> Branch:
        """Build the tree whose leaves are these members and those that the configuration names."""
        parts: dict[str, list[Branch | Leaf]] = {path: [] for path in [self.root, *self.weights]}
        for member in dict.fromkeys([*self.members, *members]):
            parts[self.queue_of(member)].append(Leaf(_quoted(member)))
        for path in reversed(list(self.weights)):
            above, _, name = path.rpartition(SEPARATOR)
            settings = self.capacities.get(path, QueueCapacity())
            amounts = {"guarantee": settings.guarantee, "deserved": settings.deserved, "limit": settings.limit}
            parts[above].append(Branch(name, tuple(parts[path]), self.weights[path], **amounts))
        return Branch(self.root, tuple(parts[self.root]))


def tree_of(queues: Sequence[Queue], default: str | None = None) -> QueueTree:
    """Validate configuration lines against each other and build a tree from them.

    Args:
        queues: the lines; without any, everybody is in one queue below the root ``root``.
        default: the queue for members of no other, by default ``default`` below the root; added if no line has it.

    Raises:
        Contradiction: two lines have different roots, give a branch different weights, define the same queue, claim the
            same member, nest one queue inside another, or promise the queues of a branch more than the branch has.
    """
    root = (queues[0].path if queues else default or ROOT).split(SEPARATOR)[0]
    added = Queue(default or joined(root, DEFAULT_QUEUE), members=())
    lines = [*queues] if any([line.path == added.path for line in queues]) else [*queues, added]
    for number, line in enumerate(lines):
        if line.path.split(SEPARATOR)[0] != root:
            raise Contradiction(0, number, f"{line.path} does not begin with {root}, as {queues[0].path} does")
    weights = _weights(lines)
    _check_nesting(lines, queue_paths={*weights} - {path.rpartition(SEPARATOR)[0] for path in weights})
    _check_promises(lines, root)
    capacities = {line.path: line.capacity for line in lines if line.capacity != QueueCapacity()}
    return QueueTree(
        root, MappingProxyType(weights), MappingProxyType(_members(lines)), added.path, MappingProxyType(capacities)
    )


def _weights(lines: Sequence[Queue]) -> dict[str, Number]:
    """Return path -> weight, parents before children; 1 where no line specifies it."""
    stated: dict[str, tuple[int, Number]] = {}
    for number, line in enumerate(lines):
        for path, weight in zip(way(line.path), line.weights[1:], strict=False):
            if weight is not None:
                first, before = stated.setdefault(path, (number, weight))
                if exact(before) != exact(weight):
                    text = f"{line.path} gives {path} the weight {weight}, {lines[first].path} gives it {before}"
                    raise Contradiction(first, number, text)
    below_root = [path for line in lines for path in way(line.path)]
    return {path: stated[path][1] if path in stated else 1 for path in dict.fromkeys(below_root)}


def _check_nesting(lines: Sequence[Queue], *, queue_paths: set[str]) -> None:
    """Refuse two lines for one path, and a queue that contains another."""
    numbers: dict[str, int] = {}
    for number, line in enumerate(lines):
        if line.path in numbers:
            raise Contradiction(numbers[line.path], number, f"{line.path} is written twice")
        numbers[line.path] = number
    for number, line in enumerate(lines):
        if line.members is not None and line.path not in queue_paths:
            below = next(place for place, inner in enumerate(lines) if inner.path.startswith(line.path + SEPARATOR))
            text = f"{line.path} is a queue and cannot contain the queue {lines[below].path}"
            raise Contradiction(number, below, text)


def _check_promises(lines: Sequence[Queue], root: str) -> None:
    """Refuse promises to queues that, singly or in total, exceed what a line states for a queue around them.

    What a queue is promised counts for the queues around it, up to the first whose line states a promise of its own:
    that one then counts instead.
    """
    numbers = {line.path: number for number, line in enumerate(lines)}
    together: Counter[tuple[str, str, str]] = Counter()
    promises = (("guarantee", ("guarantee", "deserved", "limit")), ("deserved", ("deserved", "limit")))
    for number, line in enumerate(lines):
        for promise, bounds in promises:
            for name, amount in getattr(line.capacity, promise).items():
                for above in [root, *way(line.path)][-2::-1]:
                    together[above, promise, name] += amount
                    promised = together[above, promise, name]
                    stated = lines[numbers[above]].capacity if above in numbers else QueueCapacity()
                    for bound in bounds:
                        maximum = getattr(stated, bound).get(name, promised)
                        if promised > maximum:
                            text = f"with {line.path}, {promise} adds up to {promised} {name} in {above}, "
                            raise Contradiction(numbers[above], number, f"{text}the {bound} of which is {maximum}")
                    if name in getattr(stated, promise):
                        break


def _members(lines: Sequence[Queue]) -> dict[str, str]:
    members: dict[str, int] = {}
    for number, line in enumerate(lines):
        for member in line.members or ():
            first = members.setdefault(member, number)
            if first != number:
                raise Contradiction(first, number, f"{member} is in {lines[first].path} and in {line.path}")
    return {member: lines[number].path for member, number in members.items()}


def _quoted(member: str) -> str:
    """Escape a name for use in a path; distinct names stay distinct."""
    return member.replace("%", "%25").replace(SEPARATOR, "%2F")
