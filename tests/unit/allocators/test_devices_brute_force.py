"""The device allocator compared with brute force: it misses nothing, and nothing is better than what it finds."""

from collections import Counter
from dataclasses import replace
from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.allocators.devices import allocate
from placement.allocators.devices.identical import without_twins
from placement.allocators.devices.request import THE_DEVICE, Device, Group, Host, InOnePlace, Joint, Request
from tests.examples import examples

pytestmark = pytest.mark.exhaustive

LEVELS = ("numa", "pcie")


class Everything:
    """All ways to serve a request, judged by the definitions alone."""

    def __init__(self, host, request) -> None:
        self.host, self.request = host, request
        self.devices = {device.name: device for device in host.devices}
        self.eligible = {group.label: self._eligible(group) for group in request.groups}

    def _eligible(self, group):
        return [name for name in sorted(group.options) if self._is_free(group, name) and self._is_placed(group, name)]

    def _is_free(self, group, name) -> bool:
        around = {**dict(zip(self.host.levels, self.devices[name].path, strict=True)), THE_DEVICE: name}
        return all(around[level] is not None and around[level] not in self.host.in_use for level in group.exclusive)

    def _is_placed(self, group, name) -> bool:
        rules = [(r.level, (r.primary, *r.secondaries)) for r in self.request.joint if r.required]
        rules += [(r.level, r.groups) for r in self.request.within if r.required]
        return all(self.place(name, level) is not None for level, labels in rules if group.label in labels)

    def place(self, name, level):
        return self.devices[name].path[self.host.levels.index(level)]

    def ranked(self):
        """Return (rank, choice) of all ways, the best first."""
        ways = product(*[list(self._sets(group)) for group in self.request.groups])
        choices = [dict(zip(self.eligible, way, strict=True)) for way in ways]
        return sorted((self._rank(choice), choice) for choice in choices if self._is_allowed(choice))

    def _sets(self, group):
        names = self.eligible[group.label]
        sizes = range(group.count, len(names) + 1) if group.per_subtree else [group.count]
        for size in sizes:
            for way in combinations(names, size):
                if not group.by_card or len({self.devices[name].whole for name in way}) == size:
                    yield way

    def _is_allowed(self, choice) -> bool:
        return (
            self._devices_suffice(choice)
            and self._conditions_are_met(choice)
            and all(self._is_joint(rule, choice) for rule in self.request.joint if rule.required)
            and all(self._is_frugal(rule, choice) for rule in self.request.joint)
            and all(len(self._touched(r.groups, r.level, choice)) <= 1 for r in self.request.within if r.required)
        )

    def _devices_suffice(self, choice) -> bool:
        for name, device in self.devices.items():
            serving = [group for group in self.request.groups for other in choice[group.label] if other == name]
            if sum(group.is_isolated for group in serving) > 1:
                return False
            if any(sum(g.amounts.get(c, 0) for g in serving) > room for c, room in device.room.items()):
                return False
        return True

    def _conditions_are_met(self, choice) -> bool:
        met = 0
        for group in self.request.groups:
            for name in choice[group.label]:
                met |= group.meets.get(name, 0)
        return met == (1 << self.request.conditions) - 1

    def _is_joint(self, rule, choice) -> bool:
        primaries = self._touched([rule.primary], rule.level, choice)
        return all(self._touched([label], rule.level, choice) == primaries for label in rule.secondaries)

    def _is_frugal(self, rule, choice) -> bool:
        """A group that has devices in each place of the primary takes one there, unless it wants more in all."""
        for group in [group for group in self.request.groups if group.per_subtree and group.label in rule.secondaries]:
            places = Counter(self.place(name, rule.level) for name in choice[group.label])
            if any(number > group.count for place, number in places.items() if place is not None):
                return False
        return True

    def _touched(self, labels, level, choice):
        return {self.place(name, level) for label in labels for name in choice[label]}

    def _rank(self, choice):
        taken = [name for names in choice.values() for name in names]
        numbers = []
        for level in LEVELS:
            numbers += [self._missed(level, choice), max(1, len(self._places_taken(level, choice)))]
        wanted = {name for names in self.eligible.values() for name in names}
        for level in [None, *LEVELS]:
            if level is None:
                numbers.append(len(taken))
            else:
                touched = self._places_taken(level, choice)
                there = [(self.place(name, level), self.devices[name].whole) for name in wanted]
                numbers.append(len({(place, card) for place, card in there if place in touched}))
        misfit = sum(group.options[name] for group in self.request.groups for name in choice[group.label])
        every = [(group.label, name) for group in self.request.groups for name in self.eligible[group.label]]
        return (*numbers, misfit), [name not in choice[label] for label, name in every]

    def _places_taken(self, level, choice):
        return self._touched([group.label for group in self.request.groups if group.takes], level, choice) - {None}

    def _missed(self, level, choice) -> int:
        missed = 0
        for rule in self.request.joint:
            if rule.level == level and not rule.required:
                primaries = self._touched([rule.primary], level, choice) - {None}
                for label in rule.secondaries:
                    there = self._touched([label], level, choice) - {None}
                    missed += sum(self.place(name, level) not in there for name in choice[rule.primary])
                    missed += sum(self.place(name, level) not in primaries for name in choice[label])
        for rule in self.request.within:
            if rule.level == level and not rule.required:
                places = Counter(self.place(name, level) for label in rule.groups for name in choice[label])
                missed += len(places.keys() - {None}) + places[None]
        return missed


@st.composite
def instances(draw):
    numas, inside_out = draw(st.integers(1, 3)), draw(st.booleans())
    devices = []
    for index in range(draw(st.integers(1, 6))):
        numa = draw(st.sampled_from([None, *range(numas)]))
        switch = draw(st.sampled_from([None, 0, 1]))
        path = (None if numa is None else f"numa{numa}", None if switch is None else f"pcie{numa}{switch}")
        if inside_out:
            path = path[::-1]
        card = draw(st.sampled_from(["", f"card{path}"]))
        devices.append(Device(f"d{index}", path, {"VF": draw(st.integers(1, 3))}, card))
    places = [place for device in devices for place in (*device.path, device.name) if place]
    in_use = draw(st.lists(st.sampled_from(places), max_size=2))
    host = Host(LEVELS, tuple(draw(st.permutations(devices))), frozenset(in_use))
    conditions = draw(st.integers(0, 1))
    groups = [draw(groups_of(label, devices, conditions)) for label in draw(st.sampled_from(["a", "ab", "abc"]))]
    for label in draw(st.sampled_from([(), ("twin",), ("twin", "triplet")]))[: 3 - len(groups)]:
        groups.insert(1, replace(groups[0], label=label))
    labels = [group.label for group in groups]
    rules = {"joint": draw(joints(labels)), "within": draw(withins(labels))}
    return host, Request(groups=tuple(groups), conditions=conditions, **rules)


@st.composite
def groups_of(draw, label, devices, conditions):
    names = draw(st.lists(st.sampled_from([device.name for device in devices]), unique=True, min_size=1))
    per_subtree, apart = draw(st.booleans()), draw(st.booleans())
    return Group(
        label=label,
        options={name: draw(st.integers(0, 2)) for name in names},
        count=draw(st.integers(1, 3)),
        per_subtree=per_subtree,
        amounts={"VF": draw(st.integers(1, 2))},
        is_isolated=apart,
        by_card=draw(st.booleans()),
        takes=draw(st.sampled_from([True, True, True, False])),
        exclusive=draw(st.sampled_from([(), (), ("pcie",), (THE_DEVICE,)])),
        meets={name: draw(st.integers(0, 2**conditions - 1)) for name in names},
    )


@st.composite
def joints(draw, labels):
    if len(labels) < 2 or draw(st.booleans()):
        return ()
    primary, *secondaries = draw(st.permutations(labels))
    level, required = draw(st.sampled_from(LEVELS)), draw(st.booleans())
    return (Joint(primary=primary, secondaries=tuple(secondaries), level=level, required=required),)


@st.composite
def withins(draw, labels):
    rules = []
    for _ in range(draw(st.integers(0, 2))):
        some = draw(st.lists(st.sampled_from(labels), unique=True, min_size=1))
        level, required = draw(st.sampled_from(LEVELS)), draw(st.booleans())
        rules.append(InOnePlace(groups=tuple(some), level=level, required=required))
    return tuple(rules)


@st.composite
def instances_of_ties(draw):
    """Return groups tied to a switch: each tie has the switch itself and one or two kinds of devices below it."""
    number = draw(st.integers(2, 3))
    switches = {f"s{n}": draw(st.sampled_from([None, "numa0", "numa1"])) for n in range(draw(st.integers(1, 3)))}
    below = [draw(st.sampled_from(sorted(switches))) for _ in range(draw(st.integers(1, 4)))]
    homes = {name: name for name in switches} | {f"d{n}": switch for n, switch in enumerate(below)}
    devices = [
        Device(name, (switches[home], home, *[home] * number), {"VF": draw(st.integers(1, 3))})
        for name, home in homes.items()
    ]
    ties = tuple([f"tie{n}" for n in range(number)])
    apart, of_devices = draw(st.booleans()), [name for name in homes if name not in switches]
    options = draw(st.lists(st.sampled_from(of_devices), unique=True, min_size=1))
    misfits, amount = {name: draw(st.integers(0, 1)) for name in options}, {"VF": draw(st.integers(1, 2))}
    groups, within = [], []
    for bit, tie in enumerate(ties):
        heads, meets = dict.fromkeys(switches, 0), dict.fromkeys(switches, 1 << bit)
        groups.append(Group(label=f"{tie} switch", options=heads, is_isolated=apart, takes=False, meets=meets))
        groups.append(Group(label=f"{tie} device", options=misfits, amounts=amount, is_isolated=apart))
        within.append(InOnePlace(groups=(f"{tie} switch", f"{tie} device"), level=tie, condition=bit))
    if draw(st.booleans()):
        groups[-1] = replace(groups[-1], options=dict.fromkeys(of_devices, 1))  # One tie differs from the others.
    host = Host((*LEVELS, *ties), tuple(devices), uncounted=number)
    return host, Request(groups=tuple(groups), within=tuple(within), conditions=number)


def assert_best(host: Host, request: Request, *, is_exact: bool) -> None:
    """Expect the first of all ways, or if not exact, an equally good one: it does not matter which twin gets what."""
    everything = Everything(host, request).ranked()
    found = allocate(host, request)
    assert found.complete
    assert (found.best is None) == (not everything)
    if found.best is not None:
        (rank, _order), _choice = everything[0]
        assert found.best.objective.rank == rank
        as_good = [one for (other, _order), one in everything if other == rank]
        assert found.best.devices in as_good[: 1 if is_exact else None]


@examples(12)
@given(instances_of_ties())
def test_the_best_of_all_ways_is_found_for_ties_that_want_the_same(instance) -> None:
    """Which of the ties gets which devices does not matter."""
    host, request = instance
    assert_best(host, request, is_exact=False)


@examples(25)
@given(instances())
def test_the_best_of_all_ways_is_found(instance) -> None:
    host, request = instance
    has_twins = len(without_twins(request)[0].groups) < len(request.groups)
    assert_best(host, request, is_exact=not has_twins)


@examples(9)
@given(instances(), st.integers(2, 5))
def test_further_ways_come_in_order(instance, most) -> None:
    """Ways that take more in all than requested or swap twins do not count: requests that allow them are skipped."""
    host, request = instance
    secondaries = {label for rule in request.joint if rule.required for label in rule.secondaries}
    is_exact = all(g.count == 1 and g.label in secondaries for g in request.groups if g.per_subtree)
    if not is_exact or len(without_twins(request)[0].groups) < len(request.groups):
        return
    expected = [(rank, choice) for (rank, _order), choice in Everything(host, request).ranked()[:most]]
    found = allocate(host, request, max_ways=most).allocations
    assert [(one.objective.rank, one.devices) for one in found] == expected


@examples(9)
@given(instances(), st.randoms())
def test_the_order_of_what_is_given_does_not_matter(instance, chance) -> None:
    host, request = instance
    devices = list(host.devices)
    chance.shuffle(devices)
    shuffled = Host(host.levels, tuple(devices), host.in_use)
    assert allocate(shuffled, request) == allocate(host, request)
