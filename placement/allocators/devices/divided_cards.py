"""Cards with devices in different places, so that no table of a place covers the whole card.

The virtual functions of a NIC with two ports on two switches are such devices. Where groups want different cards,
states count the devices of such a card apart, until all of the card is in the table.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from placement.allocators.devices.request import Device


class DividedCards:
    """The divided cards among some devices, numbered.

    >>> ports = [Device("a", ("pcie0",), card="nic0"), Device("b", ("pcie1",), card="nic0")]
    >>> cards = DividedCards([*ports, Device("c", ("pcie1",), card="nic1")])
    >>> len(cards), cards.number("nic0"), cards.number("nic1")
    (1, 0, None)
    >>> cards.inside(ports), cards.inside(ports[:1]), cards.are_whole(ports[:1])
    ([0], [], False)
    """

    def __init__(self, devices: Iterable[Device]) -> None:
        paths: dict[str, list[Sequence[str | None]]] = defaultdict(list)
        for device in devices:
            paths[device.whole].append(device.path)
        self._sizes = {card: len(found) for card, found in paths.items() if len({*found}) > 1}
        self._numbers = {card: number for number, card in enumerate(self._sizes)}

    def __len__(self) -> int:
        return len(self._sizes)

    def number(self, card: str) -> int | None:
        """Return the number of a card; None if it is not divided."""
        return self._numbers.get(card)

    def inside(self, devices: Iterable[Device]) -> list[int]:
        """Return the numbers of the cards all of whose devices are among these."""
        return [self._numbers[card] for card, some in self._counts(devices) if some == self._sizes[card]]

    def are_whole(self, devices: Iterable[Device]) -> bool:
        """Tell whether all devices of all cards that any of these are of are among these."""
        return all([some == self._sizes[card] for card, some in self._counts(devices)])

    def _counts(self, devices: Iterable[Device]) -> Iterable[tuple[str, int]]:
        """Return the divided cards among some devices, with the number of their devices there."""
        if not self._sizes:
            return ()
        return Counter([device.whole for device in devices if device.whole in self._sizes]).items()
