"""Trees that differ only in amounts that no number of copies can use are treated alike."""

from placement.candidates.headroom.placed import beyond_reach
from placement.domain.overlay import AS_IT_IS
from placement.domain.places import Places
from placement.domain.planner_tree import PlannerTree, ProviderStocks, Stock


def host(**free: int) -> PlannerTree:
    stocks = ProviderStocks({name: Stock(100, 100 - much) for name, much in free.items()})
    return PlannerTree(
        root=1,
        parents={1: None},
        names={1: "host"},
        traits={},
        stocks={1: stocks},
        positions={1: ()},
        places=Places({}, 0),
        foreign_providers=frozenset(),
    )


def test_what_copies_cannot_reach_is_taken() -> None:
    """Nothing is taken of other classes, or of classes that have too little."""
    found = beyond_reach({"VCPU": 3, "PGPU": 1}, host(VCPU=20, PGPU=5, DISK_GB=90), 5)
    assert found.changes == {1: {"VCPU": 5}}


def test_all_that_is_free_may_be_wanted() -> None:
    assert beyond_reach({"VCPU": 3}, host(VCPU=20), 7) == AS_IT_IS


def test_nothing_is_taken_of_what_is_over_full() -> None:
    assert beyond_reach({"VCPU": 3}, host(VCPU=-2), 0) == AS_IT_IS
