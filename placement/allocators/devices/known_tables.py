"""The tables of devices and places, computed once for all of a request's hosts where they are the same again.

Hosts of which hardly two are alike are made of places that are: a switch with a GPU and a NIC is in one of few states.
"""

from collections.abc import Hashable
from math import inf

from placement.allocators.budget import Budget
from placement.allocators.devices.place_rules import PlaceRules, SearchLayout
from placement.allocators.devices.request import Request
from placement.allocators.devices.tables import Table

MAX_STATES = 100_000
"""Tables of so many states in all are remembered for one request, some twenty megabytes."""


class SharedTables:
    """The rules of a request, and the tables of places under them.

    Args:
        rules: the rules.
        room: how many states may still be remembered.
    """

    def __init__(self, rules: PlaceRules, room: Budget) -> None:
        self.rules = rules
        self._room = room
        self._known: dict[Hashable, Table] = {}
        self._too_many = inf
        """The fewest options of a place with a table that was too large to be worth keeping."""

    def get(self, form: Hashable) -> Table | None:
        """Return the table of a place of this form, if known."""
        return self._known.get(form)

    def remember(self, form: Hashable, table: Table) -> None:
        """Remember a table, while there is room."""
        if self._room.take(len(table)):
            self._known[form] = table

    def is_too_large(self, options: int) -> bool:
        """Tell whether the table of a place with so many options is likely to be too large."""
        return options >= self._too_many

    def note_too_large(self, options: int) -> None:
        """Note that the table of a place with so many options was too large."""
        self._too_many = min(options, self._too_many)


class KnownTables:
    """The tables of one request on any of its hosts."""

    def __init__(self) -> None:
        self._by_rules: dict[Hashable, SharedTables] = {}
        self._room = Budget(MAX_STATES)

    def under(self, request: Request, layout: SearchLayout) -> SharedTables:
        """Return the tables of searches of one layout for a request, whatever devices it is asked of."""
        form = layout, _form_of(request)
        known = self._by_rules.get(form)
        if known is None:
            known = self._by_rules[form] = SharedTables(PlaceRules(request, layout), self._room)
        return known


def _form_of(request: Request) -> Hashable:
    """Return what tells the groups and rules of a request from others, devices aside."""
    groups = [
        (one.label, one.count, one.per_subtree, one.stands_for, one.by_card, one.apart, one.takes, *one.amounts.items())
        for one in request.groups
    ]
    return tuple(groups), request.joint, request.within, request.conditions
