"""Locks are taken in an order that does not depend on the process, although strings hash differently in each."""

from placement.candidates.compose.proposals import Locks
from placement.domain.tree import PlannerTree, ProviderStocks, Stock

NODES = range(101, 121)
DEVICES = range(1, 21)


def test_the_amounts_of_locks_come_in_the_order_of_the_providers() -> None:
    positions = {device: (node,) for device, node in zip(DEVICES, NODES, strict=True)}
    stocks = {node: ProviderStocks({"CUSTOM_LOCK": Stock(8, 0)}) for node in NODES}
    details = PlannerTree(1, {}, {}, stocks=stocks, positions=positions)
    amounts = {device: {"PGPU": 1} for device in DEVICES}
    held = Locks(["numa"], {"numa": "CUSTOM_LOCK"}).taken(details, [*DEVICES], [(103, "numa")], amounts)
    assert list(amounts) == [*DEVICES, *NODES]
    assert [lock.provider for lock in held] == [103]
    assert (amounts[103], amounts[104]) == ({"CUSTOM_LOCK": 8}, {"CUSTOM_LOCK": 1})
