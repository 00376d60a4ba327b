"""What is remembered of hosts that are alike, and what no more steps are taken for."""

from placement.allocators.devices import Device, Group, Host, Request
from placement.candidates.planner.device_memo import DeviceMemo


def host(*names: str) -> Host:
    return Host(("pcie",), tuple([Device(name, (f"switch of {name}",)) for name in names]))


def one_of(*names: str) -> Request:
    return Request(groups=(Group(label="gpu", options=dict.fromkeys(names, 0)),))


def test_hosts_that_are_alike_are_worked_out_once_and_others_not_without_steps() -> None:
    steps = DeviceMemo(most=1).allocate(host("a", "b"), one_of("a", "b"))[0].steps
    memo = DeviceMemo(most=1, steps=steps)
    first, _names = memo.allocate(host("a", "b"), one_of("a", "b"))
    again, names = memo.allocate(host("c", "d"), one_of("c", "d"))
    assert again is first
    assert [names[int(number)] for number in again.allocations[0].devices["gpu"]] == ["c"]
    unknown, _names = memo.allocate(host("a", "b", "c"), one_of("a", "b", "c"))
    assert (unknown.allocations, unknown.complete) == ((), False)


def test_who_wants_the_same_may_take_more_steps() -> None:
    memo = DeviceMemo(most=1, steps=0)
    assert not memo.allocate(host("a"), one_of("a"))[0].complete
    memo.allow_more()
    assert memo.allocate(host("a"), one_of("a"))[0].complete
