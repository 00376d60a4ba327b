"""What a request does to the devices of trees: the part of their scores called fragmentation.

A provider with inventory of the device class is a device; a tree's stock of the classes beside it is the host's.
"""

from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import NamedTuple
from weakref import WeakValueDictionary

import numpy as np

from placement.allocators import best_match
from placement.allocators.fragmentation.hosts import DeviceTask, FragmentationSettings, FreeDevice, FreeHost
from placement.allocators.fragmentation.outlook import DIGITS, Outlook, tidiness
from placement.candidates.tree_reader import TreeReader
from placement.cloud.columns import CloudColumns
from placement.cloud.derived import BYTES_OF_FACT, KeptInState, reading_all_pays
from placement.cloud.providers import Ints
from placement.domain.search_plan import Plan, RequestGroup
from placement.domain.tree import Tree

Tasks = tuple[DeviceTask, ...]
"""What a request takes of one host, share size by share size. Requests that ask the same share one object."""

NO_KIND = frozenset({""})
"""The kinds wanted by a request whose traits no device has together."""

FreeStocks = Mapping[int, Mapping[str, int]]
"""Provider -> resource class -> amount."""


class HostDemand(NamedTuple):
    """Something a request wants: of how many different providers, how much of each, and under which conditions."""

    resources: Mapping[str, int]
    providers: int
    conditions: Sequence[RequestGroup]


def host_demands(plan: Plan, counts: Mapping[str, int] | None = None) -> Iterator[HostDemand]:
    """Yield what the slots of a plan want; ``counts`` holds the groups, by suffix, that want several providers."""
    for slot in plan.slots:
        yield HostDemand(dict(slot.resources), (counts or {}).get(slot.suffix, 1), [plan.demands[slot.demand].group])


def tasks_of(
    demands: Iterable[HostDemand], settings: FragmentationSettings, all_kinds: Collection[str]
) -> list[DeviceTask]:
    """Return what a request takes of one host: a task for each share size and its kinds, the largest share first.

    The first task also takes what the request asks for besides devices. ``all_kinds`` are those of devices there are.
    """
    host_amounts: dict[str, int] = {}
    devices: dict[tuple[int, frozenset[str]], int] = defaultdict(int)
    for resources, count, conditions in demands:
        for name in [name for name in settings.beside if name in resources]:
            host_amounts[name] = host_amounts.get(name, 0) + resources[name] * count
        if share := resources.get(settings.devices, 0):
            devices[share, kinds_of(conditions, settings, all_kinds)] += count
    tasks: list[DeviceTask] = []
    for (share, kinds), count in sorted(devices.items(), key=lambda item: (-item[0][0], sorted(item[0][1]))):
        tasks.append(DeviceTask(host_amounts if not tasks else {}, count, share, kinds))
    return tasks or [DeviceTask(host_amounts)]


def kinds_of(
    conditions: Iterable[RequestGroup], settings: FragmentationSettings, all_kinds: Collection[str]
) -> frozenset[str]:
    """Return the device kinds that meet all conditions; empty if all kinds do."""
    allowed = {*all_kinds}
    for group in conditions:
        for any_of in group.required:
            if all(best_match(settings.kinds, trait) for trait in any_of):
                allowed &= any_of
        allowed -= group.forbidden
    if len(allowed) == len({*all_kinds}):
        return frozenset()
    return frozenset(allowed) or NO_KIND


class AlikeHosts:
    """Hosts that have the same left, with what has been worked out for them."""

    __slots__ = ("__weakref__", "host", "orders", "scores")

    def __init__(self, host: FreeHost) -> None:
        self.host = host
        self.scores: dict[Tasks, float] = {}
        self.orders: dict[DeviceTask, list[FreeDevice]] = {}


class TreeAsHost(NamedTuple):
    """A tree: the hosts it is like, and which of its providers is which device."""

    alike: AlikeHosts
    devices: Mapping[int, FreeDevice]


@dataclass(frozen=True, eq=False)
class TreeFragmentation:
    """What a request does to the devices of each tree, given by root; trees with nothing left are missing.

    It takes ``tasks`` of one host; ``of_demands`` has those of the demands of its plan that devices serve. ``weight``
    is that of fragmentation in a tree's score.
    """

    trees: Mapping[int, TreeAsHost]
    outlook: Outlook
    tasks: Tasks
    of_demands: Mapping[int, DeviceTask]
    weight: float

    def scores(self) -> dict[int, float]:
        """Return the score of each known tree, from 0 to 100; an unknown tree counts as 0."""
        tasks = self.tasks
        scores = {root: tree.alike.scores.get(tasks, -1.0) for root, tree in self.trees.items()}
        for root, score in scores.items():
            if score < 0:
                alike = self.trees[root].alike
                if tasks not in alike.scores:
                    alike.scores[tasks] = tidiness(self.outlook.cost_of_all(alike.host, tasks))
                scores[root] = alike.scores[tasks]
        return scores

    def prefer(self, tree: Tree) -> None:
        """Sort the options of device demands by what they cost, keeping equals in their order."""
        host = self.trees.get(tree.root)
        for demand, task in self.of_demands.items() if host else ():
            options = tree.options[demand]
            if len(options) > 1 and host and len({*host.devices.values()}) > 1:
                tree.options[demand] = self._in_order(host, task, options)

    def _in_order(self, host: TreeAsHost, task: DeviceTask, options: Sequence[int]) -> list[int]:
        alike = host.alike
        if task not in alike.orders:
            order = self.outlook.in_order(alike.host, task)
            alike.orders[task] = [alike.host.devices[number] for number in order]
        equal: dict[FreeDevice | None, deque[int]] = defaultdict(deque)
        for provider in options:
            equal[host.devices.get(provider)].append(provider)
        first = [equal[device].popleft() for device in alike.orders[task] if equal[device]]
        return [*first, *[provider for alike_options in equal.values() for provider in alike_options]]


class DeviceJudge:
    """Judges requests by what they leave of devices to the work expected from now on. Shared by threads.

    ``kinds`` has the kind of each device, by provider, ``class_ids`` those classes that matter and exist, by name.
    """

    def __init__(
        self, outlook: Outlook, settings: FragmentationSettings, kinds: Mapping[int, str], class_ids: Mapping[str, int]
    ) -> None:
        self.classes = settings.classes
        """The classes that it looks at."""
        self.scored = 0
        """How many scores are kept: for each request, one for all trees that are alike."""
        self._outlook = outlook
        self._settings = settings
        self._kinds = kinds
        self._class_ids = class_ids
        self._alike: WeakValueDictionary[object, AlikeHosts] = WeakValueDictionary()
        self._tasks: dict[object, Tasks] = {}

    def fragmentation(self, reader: TreeReader, demands: Iterable[HostDemand], kept: KeptInState) -> TreeFragmentation:
        """Return the effect of a request, given all it wants, on each tree; ``kept`` keeps these as hosts."""
        kinds = self._outlook.supply.units
        tasks = tuple(tasks_of(demands, self._settings, kinds))
        # One shared object for all that ask for the same.
        tasks = self._tasks.setdefault(tuple([task.form for task in tasks]), tasks)
        by_share, of_demands = {(task.share, task.kinds): task for task in tasks}, {}
        for number, demand in enumerate(reader.plan.demands):
            share = dict(demand.resources).get(self._settings.devices, 0)
            task = by_share.get((share, kinds_of([demand.group], self._settings, kinds))) if share else None
            if task is not None:
                of_demands[number] = task
        trees = self._trees(reader, kept)
        self.scored += len({tree.alike for tree in trees.values() if tasks not in tree.alike.scores})
        return TreeFragmentation(trees, self._outlook, tasks, of_demands, float(self._settings.weight))

    def _trees(self, reader: TreeReader, kept: KeptInState) -> Mapping[int, TreeAsHost]:
        """Return the trees, working out only those that have changed since they were kept, or would change."""
        columns, last = reader.as_it_is.serving.columns, kept.find(self)
        trees: Mapping[int, TreeAsHost]
        if last is None or reading_all_pays(len(last.changed), len(last.value)):
            trees = self._hosts(columns, np.arange(len(reader.roots)))
        else:
            trees = self._replaced(last.value, last.changed, columns)
        kept.keep(self, trees, size=BYTES_OF_FACT * len(trees))
        return self._replaced(trees, {*reader.roots[reader.changed].tolist()}, reader.serving.columns)

    def _replaced(
        self, trees: Mapping[int, TreeAsHost], changed: AbstractSet[int], columns: CloudColumns
    ) -> Mapping[int, TreeAsHost]:
        if not changed:
            return trees
        indices = columns.providers.tree_indices(sorted(changed))
        unchanged = {root: tree for root, tree in trees.items() if root not in changed}
        return unchanged | self._hosts(columns, indices[indices >= 0])

    def _hosts(self, columns: CloudColumns, trees: Ints) -> dict[int, TreeAsHost]:
        """Return some trees, given by index, as hosts; equal ones share what is worked out for them."""
        providers = columns.providers
        at = providers.positions_in(trees)
        free: dict[int, dict[str, int]] = defaultdict(dict)
        devices: dict[int, dict[int, FreeDevice]] = defaultdict(dict)
        for name, class_id in self._class_ids.items():
            amounts = columns.left(class_id, at)
            owners = at[amounts > 0]
            roots, ids = providers.roots[providers.trees[owners]].tolist(), providers.ids[owners].tolist()
            for root, provider, amount in zip(roots, ids, amounts[amounts > 0].tolist(), strict=True):
                if name == self._settings.devices:
                    devices[root][provider] = FreeDevice(amount, self._kinds.get(provider, ""))
                else:
                    free[root][name] = free[root].get(name, 0) + amount
        hosts = {}
        for root in sorted({*free, *devices}):
            host = FreeHost(free[root], tuple(sorted(devices[root].values())))
            form = frozenset(host.free.items()), host.devices
            if (alike := self._alike.get(form)) is None:
                alike = self._alike[form] = AlikeHosts(host)
            hosts[root] = TreeAsHost(alike, devices[root])
        return hosts

    def score(self, free: FreeStocks, taken: FreeStocks) -> float:
        """Return the score, from 0 to 100, of what is taken, also elsewhere, of what a tree has; 0 without room."""
        host, providers = self._host_in_detail(free)
        number = {provider: place for place, provider in enumerate(providers)}
        by_share: dict[int, list[int]] = defaultdict(list)
        for provider in taken.keys() & number.keys():
            by_share[taken[provider].get(self._settings.devices, 0)].append(number[provider])
        by_share.pop(0, None)
        own = [amounts for provider, amounts in taken.items() if provider in free]
        host_amounts = {name: sum([amounts.get(name, 0) for amounts in own]) for name in self._settings.beside}
        cost = 0.0
        for place, (share, chosen) in enumerate(sorted(by_share.items(), reverse=True) or [(0, [])]):
            task = DeviceTask({} if place else host_amounts, len(chosen), share)
            if not host.has_room(task.amounts) or any(host.devices[device].free < share for device in chosen):
                return tidiness(None)
            cost += self._outlook.cost(host, task, tuple(chosen))
            host = host.after(task, tuple(chosen))
        return tidiness(round(cost, DIGITS))

    def ranks(
        self,
        free: FreeStocks,
        resources: Mapping[str, int],
        options: Sequence[int],
        *,
        count: int,
        requested: Mapping[str, int],
    ) -> dict[int, int]:
        """Return how badly each of some devices with room would serve: 0 for the ``count`` best, more for the others.

        ``free`` is what each provider of the tree has left, ``resources`` what to take of each device. What is
        ``requested`` in all counts, too: what it takes besides devices makes some of these useless.
        """
        share = resources.get(self._settings.devices, 0)
        if not share or not options:
            return {}
        host, providers = self._host_in_detail(free)
        kinds = frozenset([self._kinds.get(provider, "") for provider in options])
        host_amounts = {name: requested.get(name, 0) for name in self._settings.beside}
        order = self._outlook.in_order(host, DeviceTask(host_amounts, count, share, kinds))
        rank = {providers[number]: max(0, place + 1 - count) for place, number in enumerate(order)}
        return {provider: rank[provider] for provider in options if provider in rank}

    def _host_in_detail(self, free: FreeStocks) -> tuple[FreeHost, list[int]]:
        """Return a tree as a host, and the providers of its devices, in the same order."""
        devices = self._settings.devices
        providers = [provider for provider, amounts in free.items() if amounts.get(devices, 0) > 0]
        on_host = {name: sum([amounts.get(name, 0) for amounts in free.values()]) for name in self._settings.beside}
        in_order = [FreeDevice(free[provider][devices], self._kinds.get(provider, "")) for provider in providers]
        return FreeHost(on_host, tuple(in_order)), providers
