"""Fragmentation compared with its definition, and what it must never prefer."""

from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.allocators import InvalidEntry
from placement.allocators.fragmentation.hosts import DeviceSupply, DeviceTask, FreeDevice, FreeHost
from placement.allocators.fragmentation.outlook import CostWeights, Fragmentation, Offcuts, Outlook

SIZE = 10
GRADIENT_ALONE = CostWeights(gradient=1, offcut=0, scarcity=0, fit=0)
KINDS = ("A", "B")

cores = st.integers(0, 8)
devices = st.builds(FreeDevice, st.integers(0, SIZE), st.sampled_from(KINDS))
hosts = st.builds(lambda free, some: FreeHost({"VCPU": free}, tuple(some)), cores, st.lists(devices, max_size=4))
shares = st.builds(
    lambda amount, share, kinds: DeviceTask({"VCPU": amount}, 1, share, frozenset(kinds)),
    cores,
    st.integers(1, SIZE),
    st.sets(st.sampled_from(KINDS), max_size=1),
)
whole_ones = st.builds(lambda amount, count: DeviceTask({"VCPU": amount}, count, SIZE), cores, st.integers(1, 3))
plain = st.builds(lambda amount: DeviceTask({"VCPU": amount}), cores)
tasks = st.one_of(shares, whole_ones, plain)
Expected = dict[DeviceTask, int]
expected_work = st.dictionaries(tasks, st.integers(1, 5), min_size=1, max_size=5)


def supply(*, kinds: tuple[str, ...] = KINDS) -> DeviceSupply:
    return DeviceSupply(dict.fromkeys(kinds, 8 * SIZE), SIZE, {"VCPU": 8}, most_devices=4)


def useless_by_definition(host: FreeHost, expected: Expected) -> float:
    """Return the result of the definition, device by device and task by task."""
    found = 0.0
    for task, weight in expected.items():
        if task.devices:
            will_do = [d for d in host.devices if d.free >= task.share and (not task.kinds or d.kind in task.kinds)]
            fits = host.free["VCPU"] >= task.amounts["VCPU"] and len(will_do) >= task.devices
            found += weight * sum(d.free for d in host.devices if not fits or d not in will_do)
    return found / sum(expected.values())


@given(host=hosts, expected=expected_work)
def test_fragmentation_is_what_the_definition_says(host: FreeHost, expected: Expected):
    assert Fragmentation(expected).of_host(host) == pytest.approx(useless_by_definition(host, expected))


@given(host=hosts, expected=expected_work, task=shares)
def test_the_gradient_is_the_difference_of_a_placement(host: FreeHost, expected: Expected, task: DeviceTask):
    outlook = Outlook(expected, supply(), GRADIENT_ALONE)
    for number in task.usable(host):
        after = host.after(task, (number,))
        difference = useless_by_definition(after, expected) - useless_by_definition(host, expected)
        assert outlook.cost(host, task, (number,)) == pytest.approx(difference / SIZE)


@given(host=hosts, expected=expected_work, task=tasks)
def test_no_other_devices_of_a_host_cost_less_than_the_best(host: FreeHost, expected: Expected, task: DeviceTask):
    outlook = Outlook(expected, supply(), GRADIENT_ALONE)
    if not task.fits(host):
        return
    best = outlook.best_devices(host, task)
    assert len(set(best)) == task.devices
    assert all(task.can_use(host.devices[number]) for number in best)
    useless = [outlook.useless(host.after(task, some)) for some in combinations(task.usable(host), task.devices)]
    assert outlook.useless(host.after(task, best)) == pytest.approx(min(useless))


@given(host=hosts, expected=expected_work, task=tasks)
def test_the_order_begins_with_the_best_devices_and_has_all(host: FreeHost, expected: Expected, task: DeviceTask):
    outlook = Outlook(expected, supply())
    if task.devices and task.fits(host):
        order = outlook.in_order(host, task)
        assert sorted(order) == task.usable(host)
        assert sorted(order[: task.devices]) == sorted(outlook.best_devices(host, task))
        alone = [outlook.cost(host, replace(task, devices=1), (n,)) for n in order[task.devices :]]
        assert alone == sorted(alone)


@given(host=hosts, expected=expected_work, task=tasks)
def test_the_order_of_what_is_expected_does_not_matter(host: FreeHost, expected: Expected, task: DeviceTask):
    if task.fits(host):
        backwards = dict(reversed(expected.items()))
        one, other = (Outlook(mix, supply(), GRADIENT_ALONE) for mix in (expected, backwards))
        assert one.cost(host, task) == pytest.approx(other.cost(host, task), abs=2e-9)


def test_splitting_the_last_whole_device_costs_most():
    half, whole = DeviceTask({}, 1, 5), DeviceTask({}, 1, SIZE)
    outlook = Outlook({half: 1, whole: 3}, supply(kinds=("",)))
    host = FreeHost({}, (FreeDevice(5), FreeDevice(7), FreeDevice(SIZE)))
    costs = [outlook.cost(host, half, (number,)) for number in range(3)]
    assert costs == sorted(costs)
    assert outlook.best_devices(host, half) == (0,)


def test_of_devices_that_cost_the_same_the_fullest_is_taken():
    task = DeviceTask({}, 1, 2)
    outlook = Outlook({DeviceTask({}): 1}, supply(kinds=("",)), GRADIENT_ALONE)
    assert outlook.best_devices(FreeHost({}, (FreeDevice(9), FreeDevice(3), FreeDevice(6))), task) == (1,)


def test_work_for_any_kind_stays_off_the_kind_that_others_insist_on():
    any_kind, only_a = DeviceTask({}, 1, SIZE), DeviceTask({}, 1, SIZE, frozenset({"A"}))
    outlook = Outlook({any_kind: 1, only_a: 1}, supply())
    on_a, on_b = (FreeHost({"VCPU": 8}, (FreeDevice(SIZE, kind),)) for kind in KINDS)
    assert outlook.cost(on_b, any_kind) < outlook.cost(on_a, any_kind)


sizes = st.dictionaries(st.integers(1, 20), st.integers(1, 9), min_size=1, max_size=5)


@given(demand=sizes, left=st.integers(0, 20), taken=st.integers(0, 20))
def test_rests_are_never_worth_less_together_than_apart(demand: dict[int, int], left: int, taken: int):
    offcuts = Offcuts(demand, size=20)
    if taken <= left:
        assert offcuts.lost(left, taken) >= -1e-9


@given(demand=sizes)
def test_a_whole_device_is_worth_one_and_less_is_worth_no_more(demand: dict[int, int]):
    offcuts = Offcuts(demand, size=20)
    worths = [offcuts.worth(left) for left in range(21)]
    assert worths == sorted(worths)
    assert worths[20] == pytest.approx(1)


def test_prices_of_shares_come_near_those_of_the_best_cuts():
    """A device is cut into 600 and 400, or three times 300; so 600 is worth two thirds, and 700 no more than that."""
    offcuts = Offcuts({600: 1, 400: 1, 300: 1}, size=1000)
    assert [round(offcuts.worth(left), 1) for left in (300, 400, 600, 700)] == [0.3, 0.3, 0.7, 0.7]
    assert offcuts.lost(1000, 600) < 0.02
    assert offcuts.lost(1000, 500) > 0.3


@pytest.mark.parametrize(("count", "share"), [(1, 0), (0, 1)], ids=["no share", "no device"])
def test_devices_and_shares_come_together(count: int, share: int):
    with pytest.raises(InvalidEntry):
        DeviceTask({}, count, share)
