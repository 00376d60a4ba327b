"""Reuse of placements: trees of one form take the same members in the same places, in the same order.

This holds for members that want the same, as long as taking from one tree changes nothing in another. Once a host has
taken three members, it is known what the second and the third get in any other host of that form, without composing in
it again.
"""

from typing import TYPE_CHECKING

from placement.candidates.host_sketches import HostSketch, read_off
from placement.domain.overlay import Overlay
from placement.services.planner.planning import FIRST, Planning, RankedProposal

if TYPE_CHECKING:
    from placement.candidates.canonical import CanonicalForm

_ForFurther = list[tuple[HostSketch, RankedProposal | None]]
"""For the second member, the third, and so on: the first tree of a form that had one more, and what it gave them."""


class AlikeTrees:
    """What trees of each form give the next member, after a number of members have been placed there.

    Args:
        planning: plans one candidate in each tree, before anything is taken.
        overlay: the assumed changes before anything is taken.
    """

    def __init__(self, planning: Planning, overlay: Overlay) -> None:
        self._planning = planning
        self._overlay = overlay
        self._members: dict[int, int] = {}
        """How many members have been placed in each tree."""
        self._with_others: set[int] = set()
        """The trees that others have taken from as well."""
        self._sketched: dict[int, tuple[HostSketch, _ForFurther] | None] = {}
        """Sketches of trees, with what is known of their forms."""
        self._found: dict[CanonicalForm, _ForFurther] = {}

    def note(self, root: int, *, is_own: bool) -> None:
        """Note that a tree has been taken from, by the next member or, unless ``is_own``, by somebody else."""
        self._members[root] = self._members.get(root, 0) + 1
        if not is_own:
            self._with_others.add(root)

    def _as_it_was(self, root: int) -> tuple[HostSketch, _ForFurther] | None:
        """Return a tree as it was before anything was taken, with what is known of its form."""
        if root in self._with_others:
            return None
        if root not in self._sketched:
            host = self._planning.sketch(root)
            is_as_it_is = host is not None and self._overlay.within(host.providers).is_empty
            self._sketched[root] = (host, self._found.setdefault(host.form, [])) if host and is_as_it_is else None
        return self._sketched[root]

    def knows(self, root: int) -> bool:
        """Tell whether it is known what the next member gets in a tree."""
        sketched = self._as_it_was(root)
        return sketched is not None and len(sketched[1]) >= self._members[root]

    def next_of(self, root: int) -> RankedProposal | None:
        """Return what the next member gets in a tree, None for nothing. It must be known."""
        sketched = self._as_it_was(root)
        assert sketched is not None
        host, found = sketched
        model, ranked = found[self._members[root] - 1]
        if ranked is None:
            return None
        (fails, negated, *_rest), proposal = ranked
        return (fails, negated, root, FIRST), read_off(proposal, model, host)

    def learn(self, root: int, ranked: RankedProposal | None) -> None:
        """Remember what the next member gets in a tree that has been composed in again."""
        sketched = self._as_it_was(root)
        if sketched is None or not self._planning.is_certain(root):
            return
        host, found = sketched
        if len(found) == self._members[root] - 1:
            found.append((host, ranked))
