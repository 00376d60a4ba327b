"""What the rules of a request say about the devices that are taken in one place, whichever host it is on.

States of tables are read and written here; how devices nest in places, and which there are, the search knows.
"""

from collections.abc import Callable, Sequence

from placement.allocators.devices.costs import Costs
from placement.allocators.devices.request import InOnePlace, Joint, Request
from placement.allocators.devices.tables import Counter, Counters, Pruner, Table

Closing = Callable[[int], int | None]
"""Maps a state of a complete place to the cost that a rule adds; None if the rule forbids the state."""


class PlaceRules:
    """The rules of one request in searches of one kind of host.

    Args:
        partial: the levels at which it is counted whether any place is touched.
        cards: how many cards have devices in different places.
    """

    def __init__(
        self,
        request: Request,
        levels: Sequence[str],
        costs: Costs,
        *,
        partial: tuple[int, ...],
        cards: int,
        max_ways: int,
    ) -> None:
        self._request = request
        self._costs = costs
        self._partial = partial
        self._cards = cards
        self._max_ways = max_ways
        self._index = {group.label: index for index, group in enumerate(request.groups)}
        self._bound = [within for within in request.within if within.required and within.stands_for == 1]
        """The rules that bind groups to one place. Those that stand for several may be served in several places."""
        self.by_card = [(index, group.stands_for) for index, group in enumerate(request.groups) if group.by_card]
        """The groups that want different cards, each with how many devices of one card it may have."""
        self._nth_by_card = {index: place for place, (index, _limit) in enumerate(self.by_card)}
        self.counters = Counters(self._all_counters())
        self.pruner = Pruner(request.groups, self.counters)
        """Tells which states the devices that are left cannot complete."""
        self._own_masks = [self.counters.mask([index]) for index in range(len(request.groups))]
        self._taking = self.counters.mask([index for index, group in enumerate(request.groups) if group.takes])
        self._isolated = self.counters.mask([index for index, group in enumerate(request.groups) if group.is_isolated])
        self._closings = [self._closings_of(level, name) for level, name in enumerate(levels)]
        self._bounds = [self._bounds_of(name) for name in levels]
        # A place of which nothing is taken is none.
        self._after_rules: list[dict[int, tuple[int, int] | None]] = [{0: None} for _level in levels]
        """By level, states of complete places -> the state after its rules and the cost that they add: they recur."""

    def rules_at(self, level: int) -> int:
        """Return how many rules there are about a level."""
        return len(self._closings[level]) + len(self._bounds[level])

    def units(self, group: int, meets: int, card: int | None = None) -> int:
        """Return what a device adds to a state by serving a group, and by the conditions that it meets.

        ``meets`` has the conditions as bits, ``card`` the number of its card if that has devices in different places.
        """
        units = self.counters.units
        first = len(self._request.groups) + len(self._bound)
        conditions = [units[first + bit] for bit in range(self._request.conditions) if meets >> bit & 1]
        nth = self._nth_by_card.get(group)
        of_card = 0 if card is None or nth is None else units[self._of_card(card)[nth]]
        return units[group] | sum(conditions) | of_card

    def before(self, group: int, turn: int, table: Table) -> list[int]:
        """Return the states of a device that a group can be added to.

        Turns are interchangeable, so they are taken in order.
        """
        own, turns = self._own_masks[group], turn * self.counters.units[group]
        closed_to = own | self._isolated if self._request.groups[group].is_isolated else own
        return [state for state in table if state & closed_to == turns]

    def closed(self, table: Table, level: int, *, devices: int, done: Sequence[int]) -> Table:
        """Return the table of a complete place: with the rules of its level applied, and the cost of touching it.

        Args:
            table: the table of all devices in the place.
            level: its level.
            devices: how many devices in it could have been taken.
            done: the divided cards that have no device elsewhere; states need not tell them apart any more.
        """
        max_ways, taking, after_rules = self._max_ways, self._taking, self._after_rules[level]
        touched = self._costs.touched[level] + devices * self._costs.free[level]
        kept = ~self.counters.mask([index for card in done for index in self._of_card(card)])
        closed: Table = {0: table[0]} if 0 in table else {}
        for state, of_state in table.items():
            if state not in after_rules:
                after_rules[state] = self._closed_state(level, state)
            after = after_rules[state]
            if after is not None:
                state_after, further = after[0] & kept, after[1] + touched if state & taking else after[1]
                costs_after, so_far = [cost + further for cost in of_state], closed.get(state_after)
                closed[state_after] = costs_after if so_far is None else sorted([*so_far, *costs_after])[:max_ways]
        return closed

    def _all_counters(self) -> list[Counter]:
        """Return the counters of a state, in this order.

        The devices that each group has; whether any place serves the groups bound to one; whether any device meets each
        condition; for each divided card, how many of its devices each group has that wants different cards; and whether
        any place is touched, for each level where that is counted.
        """
        groups = [
            # Counts at least to one, even if none is required, so that rules can see whether one is present.
            Counter(max(group.count, group.stands_for), group.count, saturates=True)
            if group.per_subtree
            else Counter(group.count, group.count)
            for group in self._request.groups
        ]
        withins = [Counter(1, 0) for _within in self._bound]
        conditions = [Counter(1, 1, saturates=True)] * self._request.conditions
        of_cards = [Counter(limit, 0) for _index, limit in self.by_card] * self._cards
        touched = [Counter(1, 0, saturates=True)] * len(self._partial)
        return groups + withins + conditions + of_cards + touched

    def _of_card(self, card: int) -> range:
        """Return the indices of the counters of a divided card, one for each group that wants different cards."""
        first = len(self._request.groups) + len(self._bound) + self._request.conditions
        return range(first + card * len(self.by_card), first + (card + 1) * len(self.by_card))

    def _bounds_of(self, name: str) -> list[tuple[int, int, int]]:
        """Return the in-one-place rules about a level.

        For each: the bits of its groups, the floor at which all of them are served, and what a place that serves them
        adds to a state, which only one place may.
        """
        units, groups = self.counters.units[len(self._request.groups) :], self._request.groups
        return [
            (
                self._mask(within.groups),
                self.counters.floor([group.count if group.label in within.groups else 0 for group in groups]),
                unit,
            )
            for within, unit in zip(self._bound, units, strict=False)
            if within.level == name
        ]

    def _closed_state(self, level: int, state: int) -> tuple[int, int] | None:
        """Apply the rules of a level to the state of a complete place; return None if they forbid it."""
        cost = 0
        for rule in self._closings[level]:
            added = rule(state)
            if added is None:
                return None
            cost += added
        for mask, complete, unit in self._bounds[level]:
            if state & mask:
                # Devices missing here would have to be elsewhere.
                settled = self.counters.settled(state + unit) if self.counters.reaches(state, complete) else None
                if settled is None:
                    return None
                state = settled
        if state & self._taking and level in self._partial:
            # Other devices may be in no place of the level. These counters come last.
            unit = self.counters.units[self._partial.index(level) - len(self._partial)]
            state = self.counters.settled(state + unit) or state
        return state, cost

    def _closings_of(self, level: int, name: str) -> list[Closing]:
        """Return the rules about a level that look at each place by itself."""
        joint = [self._joint_rule(rule, level) for rule in self._request.joint if rule.level == name]
        wishes = [rule for rule in self._request.within if rule.level == name and not rule.required]
        ties = [rule for rule in self._request.within if rule.level == name and rule.stands_for > 1]
        return joint + [self._wish(rule, level) for rule in wishes] + [self._whole_ties(rule) for rule in ties]

    def _joint_rule(self, joint: Joint, level: int) -> Closing:
        """Wherever primaries are, each secondary is as well: as many as the groups that it stands for."""
        primary = self._index[joint.primary]
        stand_for = {group.label: group.stands_for for group in self._request.groups}
        secondaries = [(self._index[label], stand_for[label]) for label in joint.secondaries]
        value, missed = self.counters.value, self._costs.missed[level]

        def required(state: int) -> int | None:
            if value(state, primary):
                return 0 if all([value(state, index) >= number for index, number in secondaries]) else None
            return None if any([value(state, index) for index, _number in secondaries]) else 0

        def preferred(state: int) -> int:
            primaries = value(state, primary)
            numbers = [(value(state, index), number) for index, number in secondaries]
            absent = sum([max(0, number - present) for present, number in numbers])
            alone = primaries * absent if primaries else sum([present for present, _number in numbers])
            return alone * missed

        return required if joint.required else preferred

    def _wish(self, within: InOnePlace, level: int) -> Closing:
        """Groups are in as few places as possible: each place with a device of theirs costs."""
        mask, missed = self._mask(within.groups), self._costs.missed[level]
        return lambda state: missed if state & mask else 0

    def _whole_ties(self, ties: InOnePlace) -> Closing:
        """A place serves a whole number of identical ties: of each group as many times its devices for one tie."""
        indices = [self._index[label] for label in ties.groups]
        counts = [self._request.groups[index].count // ties.stands_for for index in indices]
        value = self.counters.value

        def closing(state: int) -> int | None:
            number = value(state, indices[0]) // counts[0]
            pairs = zip(indices, counts, strict=True)
            return 0 if all([value(state, index) == number * count for index, count in pairs]) else None

        return closing

    def _mask(self, labels: Sequence[str]) -> int:
        return self.counters.mask([self._index[label] for label in labels])
