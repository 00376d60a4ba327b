"""What is remembered of equivalent hosts, and what costs no further steps."""

from placement.allocators.budget import Budget
from placement.allocators.devices import Device, Group, Host, Request
from placement.candidates.compose.devices import DeviceMemo
from placement.services.planner.composers import Composers


def host(*names: str) -> Host:
    return Host(("pcie",), tuple([Device(name, (f"place {name}",)) for name in names]))


def one_of(*names: str) -> Request:
    return Request(groups=(Group(label="gpu", options=dict.fromkeys(names, 0)),))


def test_hosts_that_are_alike_are_worked_out_once_and_others_not_without_steps() -> None:
    plenty = Budget(10_000)
    DeviceMemo(most=1).allocate(host("0", "1"), one_of("0", "1"), plenty)
    memo, budget = DeviceMemo(most=1), Budget(10_000 - plenty.left)
    first = memo.allocate(host("0", "1"), one_of("0", "1"), budget)
    assert first.allocations[0].devices == {"gpu": ("0",)}
    assert memo.allocate(host("0", "1"), one_of("0", "1"), budget) is first
    unknown = memo.allocate(host("0", "1", "2"), one_of("0", "1", "2"), budget)
    assert (unknown.allocations, unknown.complete) == ((), False)


def test_each_of_a_gang_is_allotted_its_part_of_the_steps_and_what_others_left() -> None:
    composers = Composers(100)
    composers.allot(among=4)
    assert composers.budget_now.left == 25
    composers.budget_now.take(10)
    assert composers.budget_now.left == 15
    composers.allot(among=3)
    assert composers.budget_now.left == 30
    composers.budget.take(90)
    assert composers.budget_now.left == 0
    assert composers.budget.is_used_up
