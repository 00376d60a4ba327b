"""What is remembered of hosts that are alike, and what no more steps are taken for."""

from placement.allocators.devices import Device, Group, Host, Request
from placement.candidates.allowance import Allowance
from placement.candidates.compose.device_memo import DeviceMemo


def host(*names: str) -> Host:
    return Host(("pcie",), tuple([Device(name, (f"switch of {name}",)) for name in names]))


def one_of(*names: str) -> Request:
    return Request(groups=(Group(label="gpu", options=dict.fromkeys(names, 0)),))


def test_hosts_that_are_alike_are_worked_out_once_and_others_not_without_steps() -> None:
    steps = DeviceMemo(Allowance(), most=1).allocate(host("a", "b"), one_of("a", "b"))[0].steps
    memo = DeviceMemo(Allowance(steps), most=1)
    first, _names = memo.allocate(host("a", "b"), one_of("a", "b"))
    again, names = memo.allocate(host("c", "d"), one_of("c", "d"))
    assert again is first
    assert [names[int(number)] for number in again.allocations[0].devices["gpu"]] == ["c"]
    unknown, _names = memo.allocate(host("a", "b", "c"), one_of("a", "b", "c"))
    assert (unknown.allocations, unknown.complete) == ((), False)


def test_each_of_a_gang_has_its_share_of_the_steps_and_what_others_left() -> None:
    allowance = Allowance(100)
    allowance.share(among=4)
    assert allowance.for_a_search == 25
    allowance.take(10)
    assert allowance.for_a_search == 15
    allowance.share(among=3)
    assert allowance.for_a_search == 30
    allowance.take(90)
    assert allowance.for_a_search == 0
    assert allowance.is_used_up
