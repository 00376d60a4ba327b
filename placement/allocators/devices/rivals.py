"""What rivals would cost if they did not get in each other's way, and whether they do.

Two ports of different NICs may both be best on the same one. But often the best NIC for one is not the best for the
other, and both are content. Only if they are not, a search has to decide, and only for these two.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence

from placement.allocators.devices.options import DeviceOption
from placement.allocators.devices.own_costs import OwnCosts
from placement.allocators.devices.request import Group, InOnePlace
from placement.allocators.devices.rivalry import Rivalry, Ruling
from placement.allocators.devices.supplies import PlacedOption


class Rivals:
    """Such groups on a host whose devices fit in some way. Within a region, their cost is independent of other groups.

    Args:
        rivalry: the groups.
        own: the options' own costs.
    """

    def __init__(self, rivalry: Rivalry, own: OwnCosts) -> None:
        self.rivalry = rivalry
        self._groups = rivalry.groups
        self._rules = rivalry.rules
        self._conditions = rivalry.conditions
        self._costs = own.of
        self._missed = sum([own.packing.missed[one.level] * one.least for one in rivalry.rules])
        self._rows = {index: sorted(row, key=self._cost) for index, row in rivalry.rows.items()}
        self._known: dict[int, list[PlacedOption] | None] = {}

    def least(self, region: int) -> int | None:
        """Return a lower bound on their cost in a region; None if there are too few devices for any of them."""
        found = self._cheapest(region)
        return None if found is None else self._missed + sum(map(self._cost, found))

    def are_content(self, region: int) -> bool:
        """Tell whether that bound is achieved, because each of them can have its cheapest options."""
        found = [one.option for one in self._cheapest(region) or ()]
        return self._have_room(found) and all([self._keeps(one, found) for one in self._rules]) and self._meet(found)

    def _cheapest(self, region: int) -> list[PlacedOption] | None:
        """Return the cheapest options of each group in a region; None if there are too few."""
        if region not in self._known:
            found: list[PlacedOption] = []
            for index, row in self._rows.items():
                group = self._groups[index]
                some = _cheapest_of(row, group, ~region)
                if len(some) < group.count:
                    self._known[region] = None
                    return None
                found += some
            self._known[region] = found
        return self._known[region]

    def _cost(self, one: PlacedOption) -> int:
        return self._costs[one.option.number]

    def _have_room(self, chosen: Collection[DeviceOption]) -> bool:
        on_device: dict[str, list[DeviceOption]] = defaultdict(list)
        for option in chosen:
            on_device[option.device.name].append(option)
        return all([self._has_room(options) for options in on_device.values() if len(options) > 1])

    def _has_room(self, options: Sequence[DeviceOption]) -> bool:
        """Tell whether a device has room for several options of it."""
        groups = [self._groups[one.group] for one in options]
        if sum([group.apart for group in groups]) > 1:
            return False
        rooms = options[0].device.room.items()
        return all([sum([group.amounts.get(name, 0) for group in groups]) <= room for name, room in rooms])

    def _keeps(self, ruling: Ruling, chosen: Collection[DeviceOption]) -> bool:
        """Tell whether a rule is satisfied as well as it can be."""
        rule, level, least = ruling
        if isinstance(rule, InOnePlace):
            places = self._touched(rule.groups, level, chosen)
            return rule.stands_for == 1 and len(places) <= (1 if rule.required else least)
        labels = (rule.primary, *rule.secondaries)
        is_plain = all([one.stands_for == 1 for one in self._groups if one.label in labels])
        primaries = self._touched([rule.primary], level, chosen)
        return is_plain and all([self._touched([one], level, chosen) == primaries for one in rule.secondaries])

    def _touched(self, labels: Collection[str], level: int, chosen: Iterable[DeviceOption]) -> set[str | None]:
        groups = self._groups
        return {one.device.path[level] for one in chosen if groups[one.group].label in labels} - {None}

    def _meet(self, chosen: Iterable[DeviceOption]) -> bool:
        """Tell whether these options together meet all conditions."""
        met = 0
        for option in chosen if self._conditions else ():
            met |= self._groups[option.group].meets.get(option.device.name, 0)
        return met == (1 << self._conditions) - 1


def _cheapest_of(row: Sequence[PlacedOption], group: Group, outside: int) -> list[PlacedOption]:
    """Return the cheapest options inside a region, as many as the group needs or fewer if there are not enough."""
    found: list[PlacedOption] = []
    of_cards: Counter[str] = Counter()
    for one in row:
        if len(found) == group.count:
            break
        if one.place & outside:
            continue
        if group.by_card:
            if of_cards[one.option.device.whole] == group.stands_for:
                continue
            of_cards[one.option.device.whole] += 1
        found.append(one)
    return found
