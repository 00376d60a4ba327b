"""What trees contribute to a repeated request, as text, kept from request to request.

The text of a tree depends only on the tree's own rows, on the ids of the names in the request, and on the names of
classes and traits in the text. The journal tells which trees have changed; ids and names are looked up in each request.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from placement.allocators.compactness import Counts
from placement.cloud.derived import KeptInState
from placement.domain.search_plan import NamedIds
from placement.store.connection.unit_of_work import Transaction

MOST_WITHOUT_LIMIT = 8 << 20
"""How much one request without a limit, which looks at all trees, may take, in bytes."""

BYTES_OF_TREE = 400
"""The memory of a tree without its text."""

SPARE = 16
"""How many times as many trees to keep as a request looks at: where chance decides, each looks at others."""


class WrittenTree(NamedTuple):
    """What a tree contributes to an answer.

    Args:
        counts: how many places of each level its best candidate touches.
        candidates: the text of each candidate, best first.
        providers: the text of all its providers.
    """

    counts: Counts
    candidates: tuple[str, ...]
    providers: str


Trees = Mapping[int, WrittenTree | None]
"""What trees contribute, by root; None for nothing."""


class NamesInText(NamedTuple):
    """The names of classes and traits that occur in texts, by id."""

    classes: Mapping[int, str] = {}
    traits: Mapping[int, str] = {}

    def are_those_of(self, tx: Transaction) -> bool:
        """Tell whether the ids still have these names; standard ones always do, at no cost."""
        known = tx.names
        return (
            known.classes.names(tx.connection, self.classes) == self.classes
            and known.traits.names(tx.connection, self.traits) == self.traits
        )

    def together_with(self, other: "NamesInText") -> "NamesInText":
        """Return their union, for names of one snapshot."""
        return NamesInText({**self.classes, **other.classes}, {**self.traits, **other.traits})


NO_NAMES = NamesInText()


@dataclass(frozen=True, slots=True)
class KeptTexts:
    """What trees contribute to one request.

    Args:
        ids: the ids of the names in the request; None before it has been asked for twice.
        names: the names in the texts.
        trees: the trees.
        is_refused: whether its answer is not the sum of its trees, or too large to keep.
    """

    ids: NamedIds | None = None
    names: NamesInText = NO_NAMES
    trees: Trees = field(default_factory=dict)
    is_refused: bool = False

    @property
    def size(self) -> int:
        """The memory that the trees take, in bytes."""
        return sum([BYTES_OF_TREE if tree is None else _size(tree) for tree in self.trees.values()])


ASKED_ONCE, REFUSED = KeptTexts(), KeptTexts(is_refused=True)


def _size(tree: WrittenTree) -> int:
    return BYTES_OF_TREE + len(tree.providers) + sum([BYTES_OF_TREE // 4 + len(text) for text in tree.candidates])


class TextsInSnapshot:
    """The texts that are current in a snapshot, for one request.

    Args:
        tx: the snapshot.
        kept: what was derived from the cloud.
        request: identifies the request, and the form of its answer.
        ids: the ids of the names in it.
    """

    def __init__(self, tx: Transaction, kept: KeptInState, *, request: Hashable, ids: NamedIds) -> None:
        self._kept = kept
        self._request = "texts", request
        kept_texts = kept.find(self._request)
        before: KeptTexts | None = kept_texts and kept_texts.value
        if kept_texts is None or before is None:
            kept.keep(self._request, ASKED_ONCE, size=0)
        elif not before.is_refused and (before.ids != ids or not before.names.are_those_of(tx)):
            before = KeptTexts(ids)
        elif kept_texts.changed:
            left = {root: tree for root, tree in before.trees.items() if root not in kept_texts.changed}
            before = KeptTexts(ids, before.names, left, before.is_refused)
        self.may_be_used = before is not None and not before.is_refused
        """Whether the request has been asked for before, and its answer is the sum of its trees."""
        self._before = before or KeptTexts(ids)
        self.trees = self._before.trees
        """The trees whose texts are known."""

    def keep(self, new: Trees, names: NamesInText, *, used: Trees, has_limit: bool) -> None:
        """Keep what was written.

        Args:
            new: what further trees contribute.
            names: the names in their texts.
            used: all trees that the request has looked at.
            has_limit: whether the request has a limit.
        """
        trees = {**self.trees, **new}
        if len(trees) > SPARE * len(used):
            trees = {root: tree for root, tree in trees.items() if root in used}
        texts = KeptTexts(self._before.ids, self._before.names.together_with(names), trees)
        if has_limit or texts.size <= MOST_WITHOUT_LIMIT:
            self._kept.keep(self._request, texts, size=texts.size)
        else:
            self.refuse()

    def refuse(self) -> None:
        """Write no texts for this request: its answer is not the sum of its trees."""
        self._kept.keep(self._request, REFUSED, size=0)
