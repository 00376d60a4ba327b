"""Trees that are alike take the same members in the same places: what comes next in one of them is known of the others.

Said of members that want the same, where what is taken of a tree changes nothing in another one.
"""

from typing import TYPE_CHECKING

from placement.candidates.alike_hosts import DrawnHost, moved
from placement.domain.overlay import Overlay
from placement.services.planner.planning import FIRST, Planning, RankedProposal

if TYPE_CHECKING:
    from placement.candidates.canonical import CanonicalForm

_ForFurther = list[tuple[DrawnHost, RankedProposal | None]]
"""For the second member, the third, and so on: a tree of a form, with what they got there."""


class AlikeTrees:
    """What the next member gets in trees of each form, once so many have been placed there.

    Args:
        planning: of one candidate in each tree, before anything is taken.
        overlay: what would differ before anything is taken.
    """

    def __init__(self, planning: Planning, overlay: Overlay) -> None:
        self._planning = planning
        self._overlay = overlay
        self._members: dict[int, int] = {}
        """How many have been placed in each tree."""
        self._with_others: set[int] = set()
        """The trees of which somebody else took something, too."""
        self._drawn: dict[int, tuple[DrawnHost, _ForFurther] | None] = {}
        """Trees without ids, with what is known of all like them."""
        self._found: dict[CanonicalForm, _ForFurther] = {}

    def note(self, root: int, *, is_own: bool) -> None:
        """Take note that the next member was placed in a tree; or that somebody else took something of it."""
        self._members[root] = self._members.get(root, 0) + 1
        if not is_own:
            self._with_others.add(root)

    def _as_it_was(self, root: int) -> tuple[DrawnHost, _ForFurther] | None:
        """Return a tree before anything was taken, with what is known of all like it."""
        if root in self._with_others:
            return None
        if root not in self._drawn:
            host = self._planning.drawn(root)
            is_as_it_is = host is not None and self._overlay.within(host.providers).is_empty
            self._drawn[root] = (host, self._found.setdefault(host.form, [])) if host and is_as_it_is else None
        return self._drawn[root]

    def knows(self, root: int) -> bool:
        """Tell whether it is known what the next member gets in a tree."""
        drawn = self._as_it_was(root)
        return drawn is not None and len(drawn[1]) >= self._members[root]

    def next_of(self, root: int) -> RankedProposal | None:
        """Return what the next member gets in a tree of which it is known; None if nothing."""
        drawn = self._as_it_was(root)
        assert drawn is not None
        target, found = drawn
        source, ranked = found[self._members[root] - 1]
        if ranked is None:
            return None
        (fails, negated_score, *_rest), proposal = ranked
        return (fails, negated_score, root, FIRST), moved(proposal, source, target)

    def learn(self, root: int, ranked: RankedProposal | None) -> None:
        """Take note of what the next member gets in a tree, once it was composed in again."""
        drawn = self._as_it_was(root)
        if drawn is None or not self._planning.is_certain(root):
            return
        host, found = drawn
        if len(found) == self._members[root] - 1:
            found.append((host, ranked))
