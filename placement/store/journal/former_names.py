"""What resource classes, traits and providers were called when a row of the journal was written.

Rows have ids. Triggers keep each name that an id loses, because the class or trait is deleted or renamed, together with
the row of the journal that tells of it; of a provider that is deleted, they keep the uuid. Rows up to that one mean
this name, later ones the next that the id got. That holds although ids are not assigned in the order of commits: only
what nobody uses any more can be deleted, and an id cannot be given away before that is committed.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable
from datetime import datetime

from sqlalchemy import ColumnElement, Integer, case, literal, or_, select

from placement.store.connection.unit_of_work import Transaction
from placement.store.journal.cursor import Cursor, Seen
from placement.store.journal.order import J, unread, unseen
from placement.store.journal.watched import PROVIDER
from placement.store.tables import placement_former_names

_F = placement_former_names.c
_AT_ONCE = literal(0, Integer)

RowPosition = tuple[int, int]
"""Where a reader gets a row of the journal: in this portion (0) or a later one (1), and there in the order of ids."""


class FormerNames:
    """Names that were lost from some position of the journal on.

    >>> names = FormerNames([(0, 7, "trait_name", 1, "CUSTOM_A"), (0, 9, "trait_name", 1, "CUSTOM_B")])
    >>> names.at(5, "trait_name", 1), names.at(7, "trait_name", 1), names.at(8, "trait_name", 1)
    ('CUSTOM_A', 'CUSTOM_A', 'CUSTOM_B')
    >>> names.at(10, "trait_name", 1) is None
    True
    """

    def __init__(self, ends: Iterable[tuple[int, int, str, int, str]]) -> None:
        self._ends = defaultdict[tuple[str, int | None], list[tuple[RowPosition, str]]](list)
        for is_later, journal_id, kind, id_, name in sorted(ends):
            self._ends[kind, id_].append(((is_later, journal_id), name))

    def __bool__(self) -> bool:
        return bool(self._ends)

    def at(self, journal_id: int, kind: str, id_: int | None) -> str | None:
        """Return what a row of the journal calls a class, trait or provider; None for its present name."""
        ends = self._ends.get((kind, id_), [])
        found = bisect_left(ends, (0, journal_id), key=lambda end: end[0])
        return ends[found][1] if found < len(ends) else None


def lost_since(tx: Transaction, journal_id: int, *, providers: Collection[int]) -> FormerNames:
    """Return the names for rows from this one on, in the order of ids; of providers only those of some."""
    return _names(tx, _F.journal_id >= journal_id, providers)


def lost_after(tx: Transaction, moment: datetime) -> FormerNames:
    """Return what classes and traits lost after a moment: names before the first row are those of the moment."""
    return _names(tx, J.time >= moment, ())


def not_yet_told(tx: Transaction, cursor: Cursor, portion: Seen, *, providers: Collection[int]) -> FormerNames:
    """Return the names for rows of a portion, for a reader at a cursor; of providers only those of some.

    A claim may commit before a renaming and yet have higher ids, or the other way round. Its reader knows the old name
    until it has got the row that tells of the new one.
    """
    is_later = case((unseen(tx, Seen(), portion), 0), else_=1)
    return _names(tx, unread(tx, cursor), providers, is_later=is_later)


def _names(
    tx: Transaction, which: ColumnElement[bool], providers: Collection[int], *, is_later: ColumnElement[int] = _AT_ONCE
) -> FormerNames:
    # As a join, SQLite would read the whole journal for the few rows that end a name.
    position = select(is_later).where(J.id == _F.journal_id, which).correlate(placement_former_names).scalar_subquery()
    wanted = or_(_F.kind != PROVIDER, _F.object_id.in_(sorted(providers)))
    ends = tx.tuples(select(position, _F.journal_id, _F.kind, _F.object_id, _F.name).where(wanted))
    return FormerNames([end for end in ends if end[0] is not None])
