"""Whether parts that compete for providers find room among a few of them.

Few cases need a search: mostly there is room for one part after the other, or some parts want more than the only
providers for them have.
"""

from collections.abc import Sequence
from operator import ge, sub
from typing import NamedTuple

from placement.allocators.budget import Budget
from placement.allocators.devices import Device, Group, Host, Request, allocate

ProviderRoom = tuple[int, tuple[float, ...]]
"""The parts that a provider can serve, as bits, and its room of each class."""

Rooms = tuple[tuple[ProviderRoom, ...], ...]
"""The room of the providers on each card, sorted; where cards do not matter, each provider is on a card of its own."""


class RivalPart(NamedTuple):
    """A part that competes with others.

    Args:
        number: the number of its bit in what providers can serve.
        wanted: how many different providers it wants.
        amounts: how much it takes of each class from each of them.
        apart: whether it shares no provider with another part that is apart.
        by_card: whether its providers have to be on different cards.
    """

    number: int
    wanted: int
    amounts: tuple[int, ...]
    apart: bool
    by_card: bool


class _ProviderOnCard(NamedTuple):
    """A provider: its card, the parts that it can serve, as bits, and its room of each class."""

    card: int
    parts: int
    room: tuple[float, ...]


class _Remaining:
    """What is left of a provider while parts take theirs."""

    __slots__ = ("card", "has_apart", "parts", "room")

    def __init__(self, provider: _ProviderOnCard) -> None:
        self.card, self.parts, self.room = provider.card, provider.parts, [*provider.room]
        self.has_apart = False

    def fits(self, part: RivalPart) -> bool:
        """Tell whether it has room for a part."""
        if part.apart and self.has_apart:
            return False
        return bool(self.parts >> part.number & 1) and all(map(ge, self.room, part.amounts))

    def take(self, part: RivalPart) -> None:
        """Give a part what it asks for."""
        self.room = [*map(sub, self.room, part.amounts)]
        self.has_apart |= part.apart

    def scarcity(self) -> tuple[int, float]:
        """Return a sort key: first comes what the fewest parts can use, and of that what has most left."""
        return self.parts.bit_count(), -sum(self.room)


class RivalRoom:
    """Parts that compete for providers, and what was found out about the room that these have.

    Args:
        parts: the parts.
        names: the classes.
    """

    def __init__(self, parts: Sequence[RivalPart], names: Sequence[str]) -> None:
        self._parts = sorted(parts, key=lambda part: -sum(part.amounts))
        self.names = names
        """The classes."""
        self.minds_cards = any([part.by_card and part.wanted > 1 for part in parts])
        """Whether it matters which providers are on one card."""
        self.is_boundless = len(parts) == 1 and not names and not parts[0].by_card
        """Whether any providers will do."""
        self._known: dict[Rooms, bool] = {}

    def suffices(self, rooms: Rooms, budget: Budget) -> bool | None:
        """Tell whether all parts find room; None if the budget runs out first."""
        known = self._known.get(rooms)
        if known is None and not budget.is_used_up:
            known = self._found(rooms, budget)
            if known is not None:
                self._known[rooms] = known
        return known

    def _found(self, rooms: Rooms, budget: Budget) -> bool | None:
        providers = [_ProviderOnCard(card, of, room) for card, on_card in enumerate(rooms) for of, room in on_card]
        if self._suffice_in_turn(providers):
            return True
        if self._are_too_few(providers) or self._have_too_little(providers):
            return False
        found = allocate(*self._problem(providers), budget=budget)
        return bool(found.allocations) if found.allocations or found.complete else None

    def _are_too_few(self, providers: Sequence[_ProviderOnCard]) -> bool:
        """Tell whether some part has not as many providers as it wants, even with all others left out."""
        untouched = [*map(_Remaining, providers)]
        for part in self._parts:
            cards = [one.card for one in untouched if one.fits(part)]
            if len({*cards} if part.by_card else cards) < part.wanted:
                return True
        return False

    def _have_too_little(self, providers: Sequence[_ProviderOnCard]) -> bool:
        """Tell whether some parts want more in all than the only providers that can serve them have."""
        reached = [
            frozenset([number for number, one in enumerate(providers) if one.parts >> part.number & 1])
            for part in self._parts
        ]
        for among in {*reached}:
            inside = [part for part, reach in zip(self._parts, reached, strict=True) if reach <= among]
            for at in range(len(self.names)):
                asked = sum([part.wanted * part.amounts[at] for part in inside])
                if asked > sum([providers[number].room[at] for number in among]):
                    return True
        return False

    def _suffice_in_turn(self, providers: Sequence[_ProviderOnCard]) -> bool:
        """Tell whether the parts find room one after the other, the most demanding first, each where it hurts least.

        If so, that takes far fewer steps than a search. If not, there may be room all the same.
        """
        remaining = [*map(_Remaining, providers)]
        for part in self._parts:
            fitting = [one for one in remaining if one.fits(part)]
            if part.by_card:
                fitting.sort(key=_Remaining.scarcity, reverse=True)  # Of each card, the last one stays.
                fitting = [*{one.card: one for one in fitting}.values()]
            if len(fitting) < part.wanted:
                return False
            for one in sorted(fitting, key=_Remaining.scarcity)[: part.wanted]:
                one.take(part)
        return True

    def _problem(self, providers: Sequence[_ProviderOnCard]) -> tuple[Host, Request]:
        devices = [
            Device(str(number), (), dict(zip(self.names, one.room, strict=True)), card=f"card {one.card}")
            for number, one in enumerate(providers)
        ]
        groups = [
            Group(
                label=str(part.number),
                options={str(number): 0 for number, one in enumerate(providers) if one.parts >> part.number & 1},
                count=part.wanted,
                amounts={name: amount for name, amount in zip(self.names, part.amounts, strict=True) if amount},
                apart=part.apart,
                by_card=part.by_card,
            )
            for part in self._parts
        ]
        return Host((), tuple(devices)), Request(groups=tuple(groups))
