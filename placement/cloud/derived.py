"""Keeps what was worked out from trees, with the state that it came from, until it is needed again.

Orders, facts, texts, and that nothing serves a request: each is kept under a name that tells all it depends on besides
the trees. Whoever asks again learns which trees have changed since, and works out only what these change.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable
from typing import Any, NamedTuple, Protocol, TypeVar

Value = TypeVar("Value")

MAX_BYTES = 96 * 2**20
"""The most memory that one worker's values may take, as whoever keeps them estimates it."""

BYTES_OF_NAME = 2048
"""What a value takes besides its own size: its name, and the entry itself."""

BYTES_OF_FACT = 100
"""What a fact about a tree takes."""

MAX_CHANGED = 20_000
"""From this many changed trees on, everything is read again: SQLite binds at most 32,766 values per statement."""

TREES_PER_CHANGED = 5
"""If more than one in this many trees has changed, reading all of them costs less: docs/performance.md."""

ALWAYS_READ_ALONE = 500
"""Up to this many changed trees are read alone, however few trees there are."""


class CloudChanges(NamedTuple):
    """What differs between two states of a cloud; ``roots`` are those of the trees in which anything does.

    ``marks``: the traits and aggregates, by kind and id, that any provider was given or has lost; and, by kind and
    root, the trees with other providers or names. ``filled``: the trees in which nothing differs but that more is in
    use.
    """

    roots: frozenset[int] = frozenset()
    marks: frozenset[tuple[str, int]] = frozenset()
    filled: frozenset[int] = frozenset()

    def together_with(self, later: "CloudChanges") -> "CloudChanges":
        """Return what differs if both do."""
        if not any(later):
            return self
        roots, altered = self.roots | later.roots, (self.roots - self.filled) | (later.roots - later.filled)
        return CloudChanges(roots, self.marks | later.marks, roots - altered)


NO_CHANGES = CloudChanges()


class Timeless(NamedTuple):
    """Stands for every state: what is kept for it depends on nothing but its name."""

    history: str = "any"
    number: int = 0
    is_newest: bool = True

    def changed_since(self, _number: int) -> CloudChanges:
        """Return that nothing differs."""
        return NO_CHANGES


TIMELESS = Timeless()


class CloudState(Protocol):
    """The state of a cloud that a snapshot shows."""

    @property
    def history(self) -> Hashable:
        """The history that it belongs to: what is kept of another one does not count."""

    @property
    def number(self) -> int:
        """The number of the newest state that the history knew when the snapshot was found in it."""

    @property
    def is_newest(self) -> bool:
        """Whether the snapshot shows that state, and not an older one."""

    def changed_since(self, number: int) -> "CloudChanges | None":
        """Return what may differ from the state with a number; None for everything."""


def reading_all_pays(changed: int, trees: int) -> bool:
    """Tell whether reading all trees costs less than updating the changed ones."""
    return changed > min(MAX_CHANGED, max(ALWAYS_READ_ALONE, trees // TREES_PER_CHANGED))


class Kept(NamedTuple):
    """A value that was kept, shared, so nobody may change it, and what may have changed since, as in CloudChanges."""

    value: Any
    changed: frozenset[int]
    marks: frozenset[tuple[str, int]] = frozenset()
    filled: frozenset[int] = frozenset()


class _KeptEntry(NamedTuple):
    value: Any
    number: int
    size: int


class Derived:
    """What was derived from trees, by name, shared by threads; beyond ``most_bytes`` the least recent goes."""

    def __init__(self, most_bytes: int = MAX_BYTES) -> None:
        self._most_bytes = most_bytes
        self._lock = threading.Lock()
        self._entries: OrderedDict[Hashable, _KeptEntry] = OrderedDict()
        self.size = 0
        """The memory that is taken, in bytes."""

    def find(self, state: CloudState, name: Hashable) -> Kept | None:
        """Return what is kept under a name; None for nothing, or if too much has changed since."""
        with self._lock:
            entry = self._entries.get((state.history, name))
            if entry is None:
                return None
            self._entries.move_to_end((state.history, name))
        changed = state.changed_since(entry.number)
        return None if changed is None else Kept(entry.value, *changed)

    def keep(self, state: CloudState, name: Hashable, value: Any, *, size: int) -> None:
        """Keep a value of some bytes that was worked out in a state, unless one of a newer state is kept.

        The ``name`` tells all that it depends on besides the trees.
        """
        if not state.is_newest:
            return
        with self._lock:
            before = self._entries.get((state.history, name))
            if before is not None and before.number > state.number:
                return
            self._drop((state.history, name))
            size += BYTES_OF_NAME
            if size <= self._most_bytes:
                self._entries[state.history, name] = _KeptEntry(value, state.number, size)
                self.size += size
            while self.size > self._most_bytes:
                self._drop(next(iter(self._entries)))

    def _drop(self, key: Hashable) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self.size -= entry.size


class KeptInState:
    """What was derived, as far as it holds in the state that a snapshot shows; nothing if that state is not known."""

    def __init__(self, derived: Derived | None = None, state: CloudState | None = None) -> None:
        self.derived = derived
        self._state = state
        self.is_known = state is not None

    def find(self, name: Hashable) -> Kept | None:
        """Return what is kept under a name."""
        return self.derived.find(self._state, name) if self.derived and self._state else None

    def unless_marked(self, name: Hashable, kinds: Collection[str], *, read: Callable[[], Value], size: int) -> Value:
        """Return what is kept under a name, or is read now because something of these kinds has changed."""
        kept = self.find(name)
        if kept is not None and not any(kind in kinds for kind, _id in kept.marks):
            value: Value = kept.value
            return value
        value = read()
        self.keep(name, value, size=size)
        return value

    def keep(self, name: Hashable, value: Any, *, size: int) -> None:
        """Keep a value, as ``Derived.keep`` does."""
        if self.derived and self._state:
            self.derived.keep(self._state, name, value, size=size)
