"""Remembers what was asked for in vain, and why, until a tree changes.

Where little is left, the same is asked for again and again: by schedulers that retry, and for the next instance of the
same flavor. To find nothing takes longer than to find something, the more so the larger the cloud is.
"""

from typing import Any, Generic, NamedTuple, TypeVar

from placement.services.tree_history import TreeHistories, TreeHistory
from placement.store.connection.unit_of_work import Transaction

MAX_REMEMBERED = 64
"""The most requests to remember in one state of the trees."""

Reason = TypeVar("Reason")


class _FoundNothing(NamedTuple, Generic[Reason]):
    """The requests that found nothing in one state, the newest first, each with the reason."""

    state: int
    reasons: tuple[tuple[Any, Reason], ...]


class InVain(Generic[Reason]):
    """What found nothing in the newest state of each database, shared by threads.

    Args:
        histories: the states of the trees.
    """

    def __init__(self, histories: TreeHistories) -> None:
        self._histories = histories
        self._found_nothing: dict[TreeHistory, _FoundNothing[Reason]] = {}
        """Entries are replaced, never mutated. Of two threads that replace one at once, one remembers in vain."""

    def reason(self, tx: Transaction, asked: Any) -> Reason | None:
        """Return why a request finds nothing in a snapshot; None if it is not known to find nothing.

        Args:
            tx: the snapshot.
            asked: all that the reason depends on besides the trees and names; found again by equality.
        """
        known = self._found_nothing.get(self._histories.of(tx.database))
        if known is None or known.state != self._state(tx):
            return None
        return next((reason for one, reason in known.reasons if one == asked), None)

    def note(self, tx: Transaction, asked: Any, reason: Reason) -> None:
        """Remember that a request finds nothing in a snapshot, unless that is not the newest one."""
        state, history = self._state(tx), self._histories.of(tx.database)
        known = self._found_nothing.get(history)
        if state is None or (known is not None and known.state > state):
            return
        others = known.reasons[: MAX_REMEMBERED - 1] if known is not None and known.state == state else ()
        self._found_nothing[history] = _FoundNothing(state, ((asked, reason), *others))

    def _state(self, tx: Transaction) -> int | None:
        """Return the number of the state that a snapshot shows; None if it is unknown, or older than the newest."""
        moment = self._histories.of(tx.database).moment(tx)
        return None if moment is None or moment.apart else moment.number
