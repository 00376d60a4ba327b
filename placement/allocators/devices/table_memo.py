"""Memo of the tables of places, computed once for all places of one form on all hosts of a request.

Hardly two hosts in use may be alike, but the places that they consist of are: a switch with a GPU and a NIC has one of
few tables.
"""

from collections.abc import Hashable
from math import inf

from placement.allocators.budget import Budget
from placement.allocators.devices.place_rules import PlaceRules, SearchLayout
from placement.allocators.devices.request import Request
from placement.allocators.devices.tables import Table

MAX_STATES = 100_000
"""The most states, in all tables together, to remember for one request: some twenty megabytes."""


class RuledTables:
    """The rules of a request in one layout, and the tables of places that were computed under these rules.

    Args:
        rules: the rules.
        room: how many states may still be remembered.
    """

    def __init__(self, rules: PlaceRules, room: Budget) -> None:
        self.rules = rules
        self._room = room
        self._known: dict[Hashable, Table] = {}
        self._too_many = inf
        """The fewest options of any place whose table was too large to remember."""

    def get(self, form: Hashable) -> Table | None:
        """Return the table of a place of this form, if known."""
        return self._known.get(form)

    def remember(self, form: Hashable, table: Table) -> None:
        """Remember a table, while there is room."""
        if self._room.take(len(table)):
            self._known[form] = table

    def is_too_large(self, options: int) -> bool:
        """Tell whether the table of a place with this many options is likely to be too large."""
        return options >= self._too_many

    def note_too_large(self, options: int) -> None:
        """Note that the table of a place with this many options was too large."""
        self._too_many = min(options, self._too_many)


class TableMemo:
    """The tables of places on all hosts of one request."""

    def __init__(self) -> None:
        self._by_rules: dict[Hashable, RuledTables] = {}
        self._room = Budget(MAX_STATES)

    def under(self, request: Request, layout: SearchLayout) -> RuledTables:
        """Return the tables for a request in searches of one layout, whichever devices its groups may have."""
        form = layout, _form_of(request)
        known = self._by_rules.get(form)
        if known is None:
            known = self._by_rules[form] = RuledTables(PlaceRules(request, layout), self._room)
        return known


def _form_of(request: Request) -> Hashable:
    """Return all of a request that states and rules depend on: everything but the devices."""
    groups = [
        (one.label, one.count, one.per_subtree, one.stands_for, one.by_card, one.apart, one.takes, *one.amounts.items())
        for one in request.groups
    ]
    return tuple(groups), request.joint, request.within, request.conditions
