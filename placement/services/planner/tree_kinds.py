"""Kinds of trees: those that differ only in ids and names, so that equally many copies of any request fit.

A cloud has many hosts of a few models, used in a few ways. Their contents are read once, however many requests there
are, and rules about places are then examined in one tree of each kind.
"""

from collections import defaultdict
from collections.abc import Hashable, Sequence

from placement.candidates.headroom.forms import CloudInForms
from placement.domain.overlay import Overlay
from placement.store.connection.unit_of_work import Transaction
from placement.store.search.tree_rows import TreeRows, tree_rows

READ_TOGETHER = 2_000
"""How many trees are read at a time."""


class TreeKinds:
    """The kinds of the trees of a cloud, determined on demand.

    Args:
        tx: the transaction.
        overlay: assumed changes.
        cloud: the cloud; it covers what requests name but trees do not contain, such as aggregates.
    """

    def __init__(self, tx: Transaction, overlay: Overlay, cloud: CloudInForms) -> None:
        self._tx = tx
        self._overlay = overlay
        self._like = cloud.like
        self._form_of = {root: trees.number for trees in cloud.forms for root in trees.roots.tolist()}
        self._numbers: dict[Hashable, int] = {}
        self._known: dict[int, int] = {}

    def of(self, roots: Sequence[int]) -> Sequence[int]:
        """Return the kind of each tree, including hypothetical ones. Not for trees that others share with."""
        new = [root for root in roots if root not in self._known]
        self._known |= {
            root: self._number((self._form_of[root], self._like[root])) for root in new if root in self._like
        }
        new = [root for root in new if root not in self._like]
        for first in range(0, len(new), READ_TOGETHER):
            some = new[first : first + READ_TOGETHER]
            rows = tree_rows(self._tx, {*some})
            inside: dict[int, list[int]] = defaultdict(list)
            for member in rows.members.values():
                inside[member.root_id].append(member.id)
            for root in some:
                self._known[root] = self._number((self._form_of[root], self._form(sorted(inside[root]), rows)))
        return [*map(self._known.__getitem__, roots)]

    def _number(self, kind: Hashable) -> int:
        return self._numbers.setdefault(kind, len(self._numbers))

    def _form(self, providers: Sequence[int], rows: TreeRows) -> Hashable:
        """Return what distinguishes a tree, with its providers numbered in the order of their ids."""
        numbers: dict[int | None, int] = {provider: number for number, provider in enumerate(providers)}
        return tuple(
            [
                (
                    numbers.get(rows.members[one].parent_id),
                    tuple(rows.traits.get(one, ())),
                    tuple(rows.stocks.get(one, ())),
                    self._change(one),
                )
                for one in providers
            ]
        )

    def _change(self, provider: int) -> Hashable:
        overlay = self._overlay
        changes = overlay.changes.get(provider)
        return changes and tuple(sorted(changes.items())), provider in overlay.held
