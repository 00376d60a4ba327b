"""What a request does to the devices of trees: the part of their scores called fragmentation.

A provider with inventory of the device class is a device; a tree's stock of the classes beside it is the host's.
"""

from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple
from weakref import WeakValueDictionary

from placement.allocators.entries import best_match
from placement.allocators.fragmentation import (
    DeviceTask,
    FragmentationSettings,
    FreeDevice,
    FreeHost,
    Outlook,
    tidiness,
)
from placement.allocators.fragmentation.outlook import DIGITS
from placement.domain.candidate_request import RequestGroup
from placement.domain.search_plan import Plan
from placement.domain.tree import Tree

FreeRow = tuple[int, int, int, int]
"""The root of a tree, a provider in it, a resource class, and how much of it the provider has left: more than nothing.

A plain tuple, because there are many thousands of them.
"""

Tasks = tuple[DeviceTask, ...]
"""What a request takes of one host, share size by share size. Requests that ask the same share one object."""

NO_KIND = frozenset({""})
"""The kinds wanted by a request whose traits no device has together."""


class AlikeHosts:
    """Hosts that have the same left, with what has been worked out for them."""

    __slots__ = ("__weakref__", "host", "orders", "scores")

    def __init__(self, host: FreeHost) -> None:
        self.host = host
        self.scores: dict[Tasks, float] = {}
        self.orders: dict[DeviceTask, list[FreeDevice]] = {}


class TreeStand(NamedTuple):
    """A tree: the hosts it is like, and which of its providers is which device."""

    judged: AlikeHosts
    devices: Mapping[int, FreeDevice]


FreeTrees = Mapping[int, TreeStand]
"""What is free in the trees of a cloud at one moment, by root; trees with nothing left are missing."""


class TreesByForm:
    """Turns rows into hosts; equal ones share one object, and with it what has been worked out for them.

    Args:
        classes: resource class id -> name.
        settings: which of them is the device class.
        kinds: provider -> the kind of device it is.
    """

    def __init__(self, classes: Mapping[int, str], settings: FragmentationSettings, kinds: Mapping[int, str]) -> None:
        self._classes = classes
        self._device_class = settings.devices
        self._kinds = kinds
        self._alike: WeakValueDictionary[object, AlikeHosts] = WeakValueDictionary()

    def trees(self, rows: Iterable[FreeRow]) -> dict[int, TreeStand]:
        """Return the trees that these rows describe."""
        of_tree: dict[int, list[FreeRow]] = defaultdict(list)
        for row in rows:
            of_tree[row[0]].append(row)
        return {root: self._stand(of) for root, of in of_tree.items()}

    def _stand(self, rows: Collection[FreeRow]) -> TreeStand:
        free: dict[str, int] = {}
        devices: dict[int, FreeDevice] = {}
        for _root, provider, class_id, left in rows:
            name = self._classes[class_id]
            if name == self._device_class:
                devices[provider] = FreeDevice(left, self._kinds.get(provider, ""))
            else:
                free[name] = free.get(name, 0) + left
        host = FreeHost(free, tuple(sorted(devices.values())))
        form = frozenset(free.items()), host.devices
        judged = self._alike.get(form)
        if judged is None:
            judged = self._alike[form] = AlikeHosts(host)
        return TreeStand(judged, devices)


class TreeFragmentation:
    """What a request does to the devices of each tree.

    Args:
        trees: the trees.
        outlook: the work expected from now on.
        tasks: what the request takes of one host.
        of_demands: the demands of its plan that devices serve, with what they take.
        settings: what a device is, and the weight of fragmentation in a tree's score.
    """

    def __init__(
        self,
        trees: FreeTrees,
        outlook: Outlook,
        tasks: Tasks,
        *,
        of_demands: Mapping[int, DeviceTask],
        settings: FragmentationSettings,
    ) -> None:
        self._trees = trees
        self._outlook = outlook
        self._tasks = tasks
        self._of_demands = of_demands
        self.classes = settings.classes
        """The classes considered: a tree with none of them left is unknown here."""
        self.weight = float(settings.weight)
        self.unknown = len({stand.judged for stand in self._trees.values() if tasks not in stand.judged.scores})
        """How many scores are still to be computed, because no request has needed them yet."""

    @property
    def roots(self) -> Iterable[int]:
        """The roots of the trees known here."""
        return self._trees.keys()

    def scores(self) -> dict[int, float]:
        """Return the score of each known tree, from 0 to 100; an unknown tree counts as 0."""
        tasks = self._tasks
        found = {root: stand.judged.scores.get(tasks, -1.0) for root, stand in self._trees.items()}
        for root, known in found.items():
            if known < 0:
                found[root] = self._score_of(self._trees[root].judged)
        return found

    def _score_of(self, judged: AlikeHosts) -> float:
        known = judged.scores.get(self._tasks)
        if known is None:
            known = judged.scores[self._tasks] = tidiness(self._outlook.cost_of_all(judged.host, self._tasks))
        return known

    def prefer(self, tree: Tree) -> None:
        """Sort the options of device demands by what they cost, keeping equals in their order."""
        stand = self._trees.get(tree.root)
        for demand, task in self._of_demands.items() if stand else ():
            options = tree.options[demand]
            if len(options) > 1 and stand and len({*stand.devices.values()}) > 1:
                tree.options[demand] = self._in_order(stand, task, options)

    def _in_order(self, stand: TreeStand, task: DeviceTask, options: Sequence[int]) -> list[int]:
        judged = stand.judged
        order = judged.orders.get(task)
        if order is None:
            order = judged.orders[task] = [
                judged.host.devices[number] for number in self._outlook.in_order(judged.host, task)
            ]
        alike: dict[FreeDevice | None, deque[int]] = defaultdict(deque)
        for provider in options:
            alike[stand.devices.get(provider)].append(provider)
        found = [alike[device].popleft() for device in order if alike[device]]
        return [*found, *[provider for rest in alike.values() for provider in rest]]


class WantedOfHost(NamedTuple):
    """Something a request wants: of how many different providers, how much of each, and under which conditions."""

    resources: Mapping[str, int]
    providers: int
    conditions: Sequence[RequestGroup]


def tasks_of(
    wanted: Iterable[WantedOfHost], settings: FragmentationSettings, known: Collection[str]
) -> list[DeviceTask]:
    """Return what a request takes of one host: a task for each share size and its kinds, the largest share first.

    The first task also takes what the request asks for besides devices.

    Args:
        wanted: everything it wants.
        settings: what a device is.
        known: the kinds of devices there are.
    """
    beside: dict[str, int] = {}
    devices: dict[tuple[int, frozenset[str]], int] = defaultdict(int)
    for resources, count, conditions in wanted:
        for name in settings.beside:
            if name in resources:
                beside[name] = beside.get(name, 0) + resources[name] * count
        if share := resources.get(settings.devices, 0):
            devices[share, kinds_of(conditions, settings, known)] += count
    tasks: list[DeviceTask] = []
    for (share, kinds), count in sorted(devices.items(), key=lambda item: (-item[0][0], sorted(item[0][1]))):
        tasks.append(DeviceTask(beside if not tasks else {}, count, share, kinds))
    return tasks or [DeviceTask(beside)]


def kinds_of(
    conditions: Iterable[RequestGroup], settings: FragmentationSettings, known: Collection[str]
) -> frozenset[str]:
    """Return the device kinds that meet all conditions; empty if all kinds do."""
    allowed = {*known}
    for group in conditions:
        for any_of in group.required:
            if all(best_match(settings.kinds, trait) for trait in any_of):
                allowed &= any_of
        allowed -= group.forbidden
    if len(allowed) == len({*known}):
        return frozenset()
    return frozenset(allowed) or NO_KIND


def wanted_by(plan: Plan, counts: Mapping[str, int] | None = None) -> Iterator[WantedOfHost]:
    """Yield what the slots of a plan want; ``counts`` holds the groups, by suffix, that want several providers."""
    for slot in plan.slots:
        yield WantedOfHost(dict(slot.resources), (counts or {}).get(slot.suffix, 1), [plan.demands[slot.demand].group])


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
