"""What a request does to the devices of one tree known in detail; ``fragmentation`` judges many trees by their rows."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from placement.allocators.fragmentation import (
    DeviceTask,
    FragmentationSettings,
    FreeDevice,
    FreeHost,
    Outlook,
    tidiness,
)
from placement.allocators.fragmentation.outlook import DIGITS

StocksLeft = Mapping[int, Mapping[str, int]]
"""Provider -> resource class -> amount."""


class DeviceJudge:
    """Judges the devices of one tree that is known in detail.

    Args:
        outlook: the work expected from now on.
        settings: what a device is.
        kinds: provider -> the kind of device it is.
    """

    def __init__(self, outlook: Outlook, settings: FragmentationSettings, kinds: Mapping[int, str]) -> None:
        self._outlook = outlook
        self._settings = settings
        self._kinds = kinds

    @property
    def classes(self) -> frozenset[str]:
        """The classes that it looks at."""
        return frozenset({self._settings.devices, *self._settings.beside})

    def score(self, left: StocksLeft, taken: StocksLeft) -> float:
        """Return the score, from 0 to 100, of what is taken from the providers of a tree; 0 if there is no room.

        Args:
            left: what each provider of the tree has left.
            taken: what is taken from these, and perhaps from others.
        """
        host, providers = self._host(left)
        number = {provider: place for place, provider in enumerate(providers)}
        by_share: dict[int, list[int]] = defaultdict(list)
        for provider in taken.keys() & number.keys():
            by_share[taken[provider].get(self._settings.devices, 0)].append(number[provider])
        by_share.pop(0, None)
        beside = _summed(self._settings.beside, [of for provider, of in taken.items() if provider in left])
        cost = 0.0
        for place, (share, chosen) in enumerate(sorted(by_share.items(), reverse=True) or [(0, [])]):
            task = DeviceTask({} if place else beside, len(chosen), share)
            if not host.has_room(task.amounts) or any(host.devices[one].left < share for one in chosen):
                return tidiness(None)
            cost += self._outlook.cost_on(host, task, tuple(chosen))
            host = host.after(task, tuple(chosen))
        return tidiness(round(cost, DIGITS))

    def ranks(
        self,
        left: StocksLeft,
        resources: Mapping[str, int],
        options: Sequence[int],
        *,
        count: int,
        requested: Mapping[str, int],
    ) -> dict[int, int]:
        """Return how badly each of some devices would serve: 0 for the ``count`` best ones, more for the others.

        Options that are not devices, or have no room, are left out.

        Args:
            left: what each provider of the tree has left.
            resources: what to take of each device.
            options: the devices that could serve.
            count: how many of them are wanted.
            requested: the total of the request: what it takes besides devices makes some of them useless, too.
        """
        share = resources.get(self._settings.devices, 0)
        if not share or not options:
            return {}
        host, providers = self._host(left)
        kinds = frozenset([self._kinds.get(provider, "") for provider in options])
        beside = {name: requested.get(name, 0) for name in self._settings.beside}
        order = self._outlook.in_order(host, DeviceTask(beside, count, share, kinds))
        known = {providers[number]: max(0, place + 1 - count) for place, number in enumerate(order)}
        return {provider: known[provider] for provider in options if provider in known}

    def _host(self, left: StocksLeft) -> tuple[FreeHost, list[int]]:
        """Return a tree as a host, and the providers of its devices, in the same order."""
        devices = self._settings.devices
        providers = [provider for provider, of in left.items() if of.get(devices, 0) > 0]
        found = tuple([FreeDevice(left[provider][devices], self._kinds.get(provider, "")) for provider in providers])
        return FreeHost(_summed(self._settings.beside, left.values()), found), providers


def _summed(classes: Iterable[str], amounts: Collection[Mapping[str, int]]) -> dict[str, int]:
    return {name: sum([of.get(name, 0) for of in amounts]) for name in classes}
