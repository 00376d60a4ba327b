"""The score of what is taken from a tree, on trees written as tables, with numbers computed by hand."""

from collections.abc import Mapping
from itertools import permutations
from typing import NamedTuple

import numpy as np
import pytest

from placement.allocators.ranking_profile import RankingProfile
from placement.allocators.strategy_fit.profile import Fit, Preference, Profile, Proportional, Sra
from placement.candidates.request_scores import PlacesOfCloud, RequestColumns, ScoredRequest, TakenRows
from placement.candidates.scores import Score
from placement.cloud.columns import CloudColumns, CloudRows
from placement.cloud.providers import NO_PARENT
from placement.domain.quantities import ResourceAmounts

Taken = Mapping[int, ResourceAmounts]
NUMA, PCIE = "HW_NUMA_ROOT", "CUSTOM_HW_PCIE_SWITCH"
HOST, NODE0, NODE1, GPU0, GPU1, POOL, OTHER = 1, 2, 3, 4, 5, 6, 7


class Row(NamedTuple):
    """A provider as a table has it; a stock is (capacity, used)."""

    root: int
    parent: int | None
    traits: frozenset[str]
    shares: bool
    stock: dict[str, tuple[int, int]]


def member(root: int, parent: int | None, *traits: str, shares: bool = False, **stock: tuple[int, int]) -> Row:
    return Row(root, parent, frozenset(traits), shares, stock)


MEMBERS = {
    HOST: member(HOST, None, MEMORY_MB=(1000, 0)),
    NODE0: member(HOST, HOST, NUMA, VCPU=(8, 4)),
    NODE1: member(HOST, HOST, NUMA, VCPU=(8, 0)),
    GPU0: member(HOST, NODE0, PCIE, PGPU=(4, 2)),
    GPU1: member(HOST, NODE1, PCIE, PGPU=(4, 0)),
    POOL: member(POOL, None, shares=True, DISK_GB=(100, 90), VCPU=(100, 0)),
    OTHER: member(OTHER, None, VCPU=(8, 0)),
}
SPREAD = RankingProfile("spread", Profile(fit=Fit()))
PACK_GPUS = RankingProfile(
    "ai",
    Profile(
        fit=Fit({"PGPU": Preference("MostAllocated", 2), "VCPU": Preference("LeastAllocated")}, weight=6),
        sra=Sra({"PGPU": 1}, weight=3),
        proportional=Proportional({"PGPU": {"VCPU": 2}}),
    ),
    1,
)


CLASSES = {"VCPU": 1, "MEMORY_MB": 2, "PGPU": 3, "DISK_GB": 4}


class Forest(NamedTuple):
    """Trees to take from, and what is best."""

    profile: RankingProfile
    members: dict[int, Row] = MEMBERS
    levels: tuple[str, ...] = (NUMA, PCIE)

    def requests(self, *requests: Taken) -> RequestColumns:
        stocks = [
            (id_, CLASSES[name], capacity, used, 1, capacity, 1)
            for id_, row in self.members.items()
            for name, (capacity, used) in row.stock.items()
        ]
        providers = [(row.root, id_, row.parent or NO_PARENT) for id_, row in self.members.items()]
        columns = CloudColumns.from_rows(CloudRows(providers, stocks))
        members = [self.members[id_] for id_ in columns.providers.ids.tolist()]
        levels = [np.array([level in member.traits for member in members]) for level in self.levels]
        places = PlacesOfCloud(levels, np.array([member.shares for member in members]))
        return RequestColumns(
            TakenRows.from_requests(requests), columns, places, lambda names: {name: CLASSES[name] for name in names}
        )

    def scored(self, *requests: Taken) -> list[ScoredRequest]:
        return self.requests(*requests).scored(self.profile, families=[*CLASSES])

    def score(self, taken: Taken) -> Score:
        return self.scored(taken)[0].score


FOREST = Forest(SPREAD)


def test_the_node_is_the_sum_of_the_whole_tree() -> None:
    said = FOREST.score({NODE0: {"VCPU": 4}, HOST: {"MEMORY_MB": 500}})
    assert said.fit == 50  # VCPU (16 - 8) / 16, MEMORY_MB (1000 - 500) / 1000
    assert (said.compactness, said.touched) == (100, (1, 0))
    assert said.total == 75
    assert (said.sra, said.keeps_proportion) == (None, None)


def test_parts_count_by_their_weights() -> None:
    said = Forest(PACK_GPUS).score({NODE1: {"VCPU": 4}, GPU0: {"PGPU": 2}})
    assert said.fit == pytest.approx(100 * (2 * 4 / 8 + 8 / 16) / 3)
    assert said.sra == 100  # the GPUs are requested
    assert said.touched == (2, 1)
    assert said.compactness == 50
    assert said.total == pytest.approx((6 * said.fit + 3 * 100 + 1 * 50) / 10)
    assert said.keeps_proportion is True


def test_what_does_not_ask_for_scarce_resources_is_better_off_elsewhere() -> None:
    here, there = (Forest(PACK_GPUS).score({provider: {"VCPU": 2}}) for provider in (NODE1, OTHER))
    assert (here.sra, there.sra) == (0, 100)
    assert (here.keeps_proportion, there.keeps_proportion) == (False, True)
    assert here.total < there.total


def test_what_shares_with_other_trees_is_not_the_nodes() -> None:
    alone = FOREST.score({NODE0: {"VCPU": 4}})
    assert FOREST.score({NODE0: {"VCPU": 4}, POOL: {"DISK_GB": 5}}) == alone
    disks = RankingProfile("disks", Profile(fit=Fit({"DISK_GB": Preference("MostAllocated")})), 0)
    assert Forest(disks).score({NODE0: {"VCPU": 4}, POOL: {"DISK_GB": 5}}).fit == 0


def test_what_takes_from_sharing_providers_alone_is_judged_by_their_trees_as_one() -> None:
    said = Forest(PACK_GPUS).score({POOL: {"VCPU": 50}})
    assert (said.fit, said.sra, said.compactness, said.touched) == (50, 100, 100, (0, 0))
    pools = {POOL: member(POOL, None, shares=True, VCPU=(100, 0)), 9: member(9, None, shares=True, VCPU=(300, 100))}
    assert Forest(PACK_GPUS, pools).score({POOL: {"VCPU": 50}, 9: {"VCPU": 50}}).fit == 50


def test_a_provider_of_the_tree_is_the_nodes_even_if_it_shares() -> None:
    members = {**MEMBERS, HOST: member(HOST, None, shares=True, MEMORY_MB=(1000, 0))}
    taken = {NODE0: {"VCPU": 4}, HOST: {"MEMORY_MB": 500}}
    assert Forest(SPREAD, members).score(taken) == FOREST.score(taken)


def test_levels_count_from_the_provider_upwards() -> None:
    assert FOREST.score({GPU0: {"PGPU": 1}, NODE0: {"VCPU": 1}}).touched == (1, 1)
    assert FOREST.score({GPU0: {"PGPU": 1}, GPU1: {"PGPU": 1}}).touched == (2, 2)
    assert Forest(SPREAD, levels=()).score({GPU0: {"PGPU": 1}, GPU1: {"PGPU": 1}}).touched == ()


def test_the_order_in_which_providers_are_named_does_not_matter() -> None:
    taken = [(NODE0, {"VCPU": 1}), (GPU1, {"PGPU": 1}), (POOL, {"DISK_GB": 1})]
    assert len({Forest(PACK_GPUS).score(dict(order)) for order in permutations(taken)}) == 1


def test_trees_are_told_apart_but_for_those_that_share() -> None:
    requests = {NODE0: {"VCPU": 1}, GPU1: {"PGPU": 1}, POOL: {"DISK_GB": 1}}, {NODE0: {"VCPU": 1}, OTHER: {"VCPU": 1}}
    assert FOREST.requests(*requests, {POOL: {"DISK_GB": 1}}).in_several_trees == [1]


def test_requests_are_scored_together_as_each_alone() -> None:
    requests = [
        {NODE0: {"VCPU": 4}, HOST: {"MEMORY_MB": 500}},
        {NODE1: {"VCPU": 4}, GPU0: {"PGPU": 2}},
        {OTHER: {"VCPU": 9}},
        {POOL: {"VCPU": 50}},
        {NODE0: {"VCPU": 2**62}, POOL: {"DISK_GB": 2**62}},
        {GPU1: {"PGPU": 2}, NODE0: {"VCPU": 4}},
    ]
    for profile in (SPREAD, PACK_GPUS):
        forest = Forest(profile)
        assert forest.scored(*requests) == [forest.scored(taken)[0] for taken in requests]
    assert Forest(SPREAD).scored() == []


@pytest.mark.parametrize(
    ("taken", "has_room"),
    [
        ({NODE0: {"VCPU": 4}}, True),
        ({NODE0: {"VCPU": 5}}, False),
        ({NODE1: {"VCPU": 8}, POOL: {"DISK_GB": 10}}, True),
        ({NODE1: {"VCPU": 8}, POOL: {"DISK_GB": 11}}, False),
        ({NODE1: {"PGPU": 1}}, False),
    ],
)
def test_room_is_what_each_provider_has_left(taken: dict[int, dict[str, int]], has_room: bool) -> None:
    assert FOREST.scored(taken)[0].has_room is has_room


def test_a_profile_without_parts_scores_nothing() -> None:
    said = Forest(RankingProfile("none", Profile(), 0)).score({NODE0: {"VCPU": 1}})
    assert (said.total, said.fit, said.sra, said.compactness) == (0, None, None, None)
