"""The ways to use one device: for no group, for one, or for several that it can serve at once."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from placement.allocators.devices.options import DeviceOption
from placement.allocators.devices.place_rules import PlaceRules
from placement.allocators.devices.pruning import AllOrNone, taken_together
from placement.allocators.devices.request import DividedCards, Request
from placement.allocators.devices.tables import Table, Tables

STEPS_FOR_A_SET = 5
"""The cost of looking at a set of groups on one device, in pairs of states."""


class _Addition(NamedTuple):
    """Options that a device takes together.

    Args:
        first: one of them; a state that it can be added to takes all others, too.
        units: what they add to a state.
        cost: their own costs.
        amounts: what they ask of the device, packed.
    """

    first: DeviceOption
    units: int
    cost: int
    amounts: int


class DeviceTable:
    """Lays out the ways to use any one device of a host.

    Args:
        request: the request.
        rules: its rules.
        own: the options' own costs.
        cards: the cards whose devices are in different places.
    """

    def __init__(self, request: Request, rules: PlaceRules, own: Sequence[int], cards: DividedCards) -> None:
        self._groups = request.groups
        self._rules = rules
        self._own = own
        self._cards = cards

    def table(self, options: Sequence[DeviceOption], tables: Tables, all_or_none: Sequence[AllOrNone] = ()) -> Table:
        """Return the table of a device.

        Args:
            options: the options of this device, in order.
            tables: has the steps to spend, and the number of states to keep.
            all_or_none: groups of which it serves all or none.
        """
        table: Table = {0: [0]}
        room, asked, guard = self._packed_room(options)
        left, settled, before = {0: room}, self._rules.counters.settled, self._rules.before
        for first, units, cost, amounts in self._additions(options, asked, all_or_none):
            tables.budget.take(STEPS_FOR_A_SET * len(table))
            for state in [] if tables.is_over else before(first.group, first.turn, table):
                still_left, both = left[state] - amounts, settled(state + units)
                if both is not None and still_left & guard == guard:
                    table[both], left[both] = [known + cost for known in table[state]], still_left
            table = tables.narrowed(table)
        return table

    def _additions(
        self, options: Sequence[DeviceOption], asked: Sequence[int], all_or_none: Sequence[AllOrNone]
    ) -> Iterator[_Addition]:
        """Yield what can be added to a state; ``asked`` has for each option what it asks of the device, packed."""
        amounts = {option.number: packed for option, packed in zip(options, asked, strict=True)}
        own, settled = self._own, self._rules.counters.settled
        for some in taken_together(options, all_or_none, self._rules.counters.units):
            apart = [option for option in some if self._groups[option.group].apart]
            units: int | None = 0
            for option in some:
                units = None if units is None else settled(units + self._units(option))
            if units is not None and len(apart) <= 1:
                numbers = [option.number for option in some]
                cost, together = sum([own[one] for one in numbers]), sum([amounts[one] for one in numbers])
                yield _Addition((apart or some)[0], units, cost, together)

    def _packed_room(self, options: Sequence[DeviceOption]) -> tuple[int, list[int], int]:
        """Return a device's room, what each option asks of it, and the guard bits, each as one number.

        Each class has a field in these numbers, topped by a guard bit. So one subtraction takes from all classes, and
        clears the guard bit of each that has too little.
        """
        room, guard, asked = 0, 0, [0] * len(options)
        wanted = [self._groups[option.group].amounts for option in options]
        shift = 0
        for name, left in options[0].device.room.items() if options else ():
            amounts = [of.get(name, 0) for of in wanted]
            together = sum(amounts)  # More room makes no difference.
            asked = [packed | amount << shift for packed, amount in zip(asked, amounts, strict=True)]
            room |= int(max(0, min(left, together))) << shift
            shift += together.bit_length()
            guard |= 1 << shift
            shift += 1
        return room | guard, asked, guard

    def _units(self, option: DeviceOption) -> int:
        meets = self._groups[option.group].meets.get(option.device.name, 0)
        return self._rules.units(option.group, meets, self._cards.number(option.device.whole))
