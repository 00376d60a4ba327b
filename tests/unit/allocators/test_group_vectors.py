"""The vectors GA-01 to GA-22 of the Group Allocator, and the figures of its paper.

The implementation described there, called upstream here, defines what fits and with which score. Among
locations that are equal for the request, the choice is compared up to an exchange: upstream takes the last in the order
of plain strings, ours the first in natural order. Other differences are explained in docstrings.
"""

from collections.abc import Mapping

import pytest

from placement.allocators.group import Container, GroupAllocation, Offer, allocate
from placement.allocators.group.locations import Rules
from placement.allocators.group.tree import Phase

INITIALISATION = Phase.INITIALISATION


def gpu(index: object, *, around: str = "", **amounts: int) -> dict[str, int]:
    """Return the names of one device, with one card by default."""
    return {f"{around}gpu/{index}/{base}": amount for base, amount in ({"cards": 1} | amounts).items()}


def merged(*parts: Mapping[str, int]) -> dict[str, int]:
    return {name: amount for part in parts for name, amount in part.items()}


T1 = merged(
    gpu("dev0", memory=100000),
    gpu("dev1", memory=256000, enumType=1),
    gpu("dev2", memory=257000),
    gpu("dev3", memory=192000, enumType=1),
    gpu("dev4", memory=178000),
)
T1_PLAIN = {name: amount for name, amount in T1.items() if "enum" not in name}
T4 = merged(
    gpu("dev0", around="grp0/group0/", memory=100000),
    gpu("dev1", around="grp0/group0/", memory=256000),
    gpu("dev2", around="grp0/group1/", memory=257000),
    gpu("dev3", around="grp0/group2/", memory=192000),
    gpu("dev4", around="grp0/group2/", memory=178000),
)
MEMORIES = [100000, 256000, 257000, 192000, 178000, 100000, 256000, 257000]
T5 = merged(
    *[
        gpu(f"dev{number}", around=f"grp1/{number // 4}/grp0/{number // 2}/", memory=memory)
        for number, memory in enumerate(MEMORIES)
    ]
)
SEED_IV = merged(*[gpu(f"dev{number}", around=f"Gpugrp1/{number // 4}/Gpugrp0/{number // 2}/") for number in range(8)])


def placed(offer: Mapping[str, int], *containers: Container, **rules: object) -> GroupAllocation:
    return allocate(Offer(offer), containers, Rules(**rules))


def fits(allocation: GroupAllocation, score: float) -> bool:
    return allocation.feasible and allocation.complete and allocation.score == pytest.approx(score, abs=5e-7)


def targets(mapping: Mapping[str, str], base: str = "cards") -> dict[str, str]:
    """Return the groups assigned to the groups of one base resource, both without that base."""
    end = f"/{base}"
    return {name.removesuffix(end): to.removesuffix(end) for name, to in mapping.items() if name.endswith(end)}


def record(*pairs: tuple[str, str], bases: tuple[str, ...] = ("cards", "memory")) -> dict[str, str]:
    return {f"{name}/{base}": f"{to}/{base}" for name, to in pairs for base in bases}


def ga_01(memory: int, *records: Mapping[str, str]) -> list[Container]:
    """Return the containers of GA-01; the init container asks for the given memory."""
    first, second, last = records or ({}, {}, {})
    return [
        Container(merged(gpu("a", memory=256000), gpu("b", memory=178000)), recorded=first),
        Container(gpu(0, memory=190000, enumType=3), recorded=second),
        Container(gpu(0, memory=memory), INITIALISATION, recorded=last),
    ]


@pytest.mark.parametrize(("memory", "to"), [(100000, "dev4"), (257000, "dev2")], ids=["GA-01", "GA-02"])
def test_what_upstream_chooses_has_the_score_it_says(memory, to):
    """GA-01 and GA-02 with upstream's mapping recorded: scored again, not placed again."""
    containers = ga_01(
        memory,
        record(("gpu/a", "gpu/dev2"), ("gpu/b", "gpu/dev4")),
        record(("gpu/0", "gpu/dev3")),
        record(("gpu/0", f"gpu/{to}")),
    )
    allocation = placed(T1, *containers)
    assert fits(allocation, 0.582141)
    devices = [set(targets(mapping).values()) for mapping in allocation.mappings]
    assert devices == [{"gpu/dev2", "gpu/dev4"}, {"gpu/dev3"}, {f"gpu/{to}"}]


@pytest.mark.parametrize(
    ("memory", "shares"), [(100000, {"dev1", "dev3", "dev4"}), (257000, {"dev2"})], ids=["GA-01 W", "GA-02 W"]
)
def test_the_best_score_is_found_also_where_a_greedy_choice_misses_it(memory, shares):
    """Upstream serves a request of 256000 with a device of 257000: the means of devices decide, not the node's score.

    The device of exactly 256000 has an attribute that nobody requested, which lowers its mean. The init container uses
    a device of a running container if it can.
    """
    allocation = placed(T1, *ga_01(memory))
    assert fits(allocation, (1 + 1 + 190 / 192 + 3 + 1) / 12)
    assert targets(allocation.mappings[0]) == {"gpu/a": "gpu/dev1", "gpu/b": "gpu/dev4"}
    assert targets(allocation.mappings[1]) == {"gpu/0": "gpu/dev3"}
    assert targets(allocation.mappings[2])["gpu/0"].removeprefix("gpu/") in shares


def test_initialisation_shares_a_device_of_a_running_container():
    """GA-03: three cards are needed at a time, so three are used."""
    containers = [Container(merged(gpu(0), gpu(1))), Container(gpu(0)), Container(gpu(0), INITIALISATION)]
    allocation = placed(T1_PLAIN, *containers)
    assert fits(allocation, 0.3)
    running = {*targets(allocation.mappings[0]).values(), *targets(allocation.mappings[1]).values()}
    assert len(running) == 3
    assert set(targets(allocation.mappings[2]).values()) < running
    assert sum(allocation.taken.values()) == 3


def test_containers_share_groups_where_that_is_the_only_way():
    """GA-04. Of dev0 and dev1, equally good for the init container, upstream takes the second."""
    group = "grp0/A/"
    allocation = placed(
        T4,
        Container(merged(gpu(0, around=group, memory=190000), gpu(1, around=group, memory=178000))),
        Container(gpu(0, memory=256000)),
        Container(merged(gpu(0, memory=256000), gpu(1, memory=100000))),
        Container(gpu(0, memory=100000), INITIALISATION),
    )
    assert fits(allocation, 0.998569)
    pair = {f"grp0/A/gpu/{number}": f"grp0/group2/gpu/dev{3 + number}" for number in range(2)}
    assert targets(allocation.mappings[0]) == pair
    # Both ask for 256000 and can be exchanged.
    big = {targets(allocation.mappings[1])["gpu/0"], targets(allocation.mappings[2])["gpu/0"]}
    assert big == {"grp0/group0/gpu/dev1", "grp0/group1/gpu/dev2"}
    assert targets(allocation.mappings[2])["gpu/1"] == "grp0/group0/gpu/dev0"
    assert targets(allocation.mappings[3])["gpu/0"] == "grp0/group0/gpu/dev0"


def test_two_devices_of_one_group_come_from_one_group():
    """GA-05."""
    around = "grp0/A/"
    allocation = placed(T5, Container(merged(gpu(0, around=around), gpu(1, around=around))))
    assert fits(allocation, 0.125)
    assert allocation.objective.touched == (1, 1, 2)
    # The first in natural order; upstream: dev7 and dev6.
    assert list(targets(allocation.mappings[0]).values()) == ["grp1/0/grp0/0/gpu/dev0", "grp1/0/grp0/0/gpu/dev1"]


def test_groups_that_are_asked_for_may_share_one_that_is_there():
    """GA-06: four lower groups of one device each are served by two groups with two devices each."""
    apart = [gpu(0, around=f"grp1/R0/grp0/{label}/") for label in "ABCD"]
    allocation = placed(T5, Container(merged(*apart, *[gpu(n, around="grp1/R1/grp0/A/") for n in range(2)])))
    assert fits(allocation, 0.375)
    # Two upper groups, three lower ones, six devices, as upstream.
    assert allocation.objective.touched == (2, 3, 6)


def seed_example() -> tuple[dict[str, int], Container]:
    """Return the offer and the request of the paper's parts I and II, memory in GiB.

    Its part II-A prints dev1 with 2 GiB in one place; everywhere else it has 3.
    """
    devices = [gpu(f"dev{number}", memory=size) for number, size in enumerate([1, 3, 2, 4])]
    wanted = merged({"cpu": 2, "memory": 1}, gpu(0, memory=1), gpu(1, memory=2))
    return merged({"cpu": 4, "memory": 2}, *devices), Container(wanted)


def test_the_mapping_of_the_seed_document_is_found():
    """GA-07: base resources are mapped to themselves, groups to the devices that fit best."""
    offer, container = seed_example()
    allocation = placed(offer, container)
    assert fits(allocation, 0.5)
    itself = {"cpu": "cpu", "memory": "memory"}
    assert allocation.mappings[0] == record(("gpu/0", "gpu/dev0"), ("gpu/1", "gpu/dev2")) | itself


def test_what_a_workload_takes_is_in_use_for_the_next():
    """The end of the paper's part II: the usage of all its containers is added, and subtracted when it leaves."""
    offer, container = seed_example()
    taken = placed(offer, container).taken
    assert taken["gpu/dev2/memory"] == 2
    again = allocate(Offer(offer, taken), [container])
    assert targets(again.mappings[0]) == {"gpu/0": "gpu/dev3", "gpu/1": "gpu/dev1"}


def test_of_several_nodes_the_one_with_the_best_score_is_chosen():
    """The paper's figure 1 and equation 1; nothing fits on the first node, the second is used best."""
    stocks = [(1, 4), (4, 2), (8, 8)]
    nodes = {str(number): Offer({"cpu": cpu, "memory": memory}) for number, (cpu, memory) in enumerate(stocks)}
    allocations = [allocate(offer, [Container({"cpu": 2, "memory": 1})]) for offer in nodes.values()]
    ranks = {
        name: allocated.objective.rank
        for name, allocated in zip(nodes, allocations, strict=True)
        if allocated.objective
    }
    best = max(ranks, key=ranks.__getitem__)
    assert (best, ranks[best][0]) == ("1", 0.5)
    assert "0" not in ranks


def test_affinity_groups_of_two_levels_are_placed_as_asked():
    """GA-08, the paper's figure 3: each pair is one lower group, the two pairs of R1 are in one upper group."""
    pairs = ("Gpugrp1/R0/Gpugrp0/RA/", "Gpugrp1/R1/Gpugrp0/RA/", "Gpugrp1/R1/Gpugrp0/RB/")
    requested = [gpu(f"gpu{number}", around=pairs[number // 2]) for number in range(6)]
    allocation = placed(SEED_IV, Container(merged(*requested)))
    assert fits(allocation, 0.75)
    lower = {}
    for asked, got in targets(allocation.mappings[0]).items():
        lower.setdefault(asked.rsplit("/gpu/", 1)[0], set()).add(got.rsplit("/gpu/", 1)[0])
    assert [len(groups) for groups in lower.values()] == [1, 1, 1]
    upper = {asked: min(groups).split("/")[1] for asked, groups in lower.items()}
    assert upper["Gpugrp1/R1/Gpugrp0/RA"] == upper["Gpugrp1/R1/Gpugrp0/RB"] != upper["Gpugrp1/R0/Gpugrp0/RA"]
    assert len(set().union(*lower.values())) == 3


def test_upper_groups_that_are_left_out_are_filled_in():
    """GA-09, the paper's part V."""
    requested = merged(*[gpu(f"gpu{number}", around="Gpugrp0/RA/") for number in range(2)])
    allocation = placed(SEED_IV, Container(requested))
    assert fits(allocation, 0.25)
    assert allocation.objective.touched == (1, 1, 2)


def test_devices_without_groups_may_come_from_anywhere():
    """GA-10: no affinity is requested. Two devices are packed nevertheless, five may be spread."""
    allocation = placed(SEED_IV, Container(merged(gpu(0), gpu(1))))
    assert fits(allocation, 0.25)
    assert allocation.objective.touched == (1, 1, 2)
    scattered = {name: 1 for name in SEED_IV if name.endswith(("dev0/cards", "dev2/cards", "dev4/cards"))}
    crowded = allocate(Offer(SEED_IV, scattered), [Container(merged(*[gpu(number) for number in range(5)]))])
    assert crowded.feasible


@pytest.mark.parametrize("offer", [{}, T1, SEED_IV], ids=["empty", "T1", "seed IV"])
def test_an_empty_request_fits_everywhere(offer):
    """GA-12."""
    allocation = placed(offer, Container({}))
    assert fits(allocation, 0)
    assert allocation.mappings == ({},)


@pytest.mark.parametrize(
    "requested",
    [{"fpga": 1}, gpu(0, memory=258000), merged(gpu(0), {"gpu/1/cores": 1})],
    ids=["GA-13", "too much", "no such resource in a group"],
)
def test_what_fits_nowhere_even_alone_is_not_placed(requested):
    allocation = placed(T1, Container(requested))
    assert not allocation.feasible
    assert allocation.complete


@pytest.mark.parametrize(("asked", "feasible"), [(0, True), (1, False)], ids=["GA-14 nothing", "GA-14 something"])
def test_of_a_resource_without_capacity_nothing_can_be_had(asked, feasible):
    allocation = placed({"cpu": 0}, Container({"cpu": asked}))
    assert (allocation.feasible, allocation.score) == (feasible, 0)


@pytest.mark.parametrize("names", [("d1", "d2"), ("dev2", "dev10")], ids=["GA-16 W", "GA-17 W"])
def test_of_equal_locations_the_first_in_natural_order_is_taken(names):
    """Upstream takes the last in the order of plain strings: d2, and dev2 of dev10 and dev2. Ours compares by value."""
    allocation = placed(merged(*[gpu(name) for name in reversed(names)]), Container(gpu(0)))
    assert targets(allocation.mappings[0]) == {"gpu/0": f"gpu/{names[0]}"}


@pytest.mark.parametrize("label", ["a", "z"], ids=["GA-18 W", "GA-19 W"])
def test_an_early_choice_does_not_take_what_a_later_one_needs(label):
    """Upstream gives ``a`` the device d0, which fits it best, finds none for ``b`` and gives up.

    If ``a`` is renamed to ``z``, it succeeds. Whether a request fits must not depend on its order or labels.
    """
    offer = merged(gpu("d0", memory=16, cores=4), gpu("d1", memory=10, cores=8))
    wanted = merged(gpu(label, memory=8, cores=4), gpu("b", memory=16, cores=1))
    allocation = placed(offer, Container(wanted))
    assert fits(allocation, 0.7583333)
    assert targets(allocation.mappings[0]) == {f"gpu/{label}": "gpu/d1", "gpu/b": "gpu/d0"}


def bins(kind: str, sizes: Mapping[str, int]) -> dict[str, int]:
    """Return groups with the given numbers of cards: as one amount, or as devices of one card each."""
    if kind == "cards":
        return {f"grp/{name}/cards": size for name, size in sizes.items()}
    return merged(*[gpu(number, around=f"grp/{name}/") for name, size in sizes.items() for number in range(size)])


@pytest.mark.parametrize("kind", ["cards", "devices"])
@pytest.mark.parametrize(
    ("offer", "wanted", "together"),
    [
        ({"X": 4, "Y": 3}, {"A": 2, "B": 2, "C": 3}, {"X": {"A", "B"}, "Y": {"C"}}),
        ({"X": 2, "Y": 4}, {"A": 1, "B": 2, "C": 3}, {"X": {"B"}, "Y": {"A", "C"}}),
    ],
    ids=["GA-20 W", "GA-21 W"],
)
def test_groups_are_packed_where_only_one_packing_fits(kind, offer, wanted, together):
    """Upstream takes the best group for each request separately, without backtracking, and finds no fit."""
    allocation = placed(bins(kind, offer), Container(bins(kind, wanted)))
    assert fits(allocation, 1.0)
    packed = {}
    for asked, got in targets(allocation.mappings[0]).items():
        packed.setdefault(got.split("/")[1], set()).add(asked.split("/")[1])
    assert packed == together


def test_what_was_only_considered_for_one_container_does_not_bind_the_next():
    """GA-22 W: upstream marks a group as used while merely trying it.

    A later container then prefers that group, which leaves the last one without a device.
    """
    offer = merged(
        gpu("p", around="grp/0/", memory=100),
        gpu("q", around="grp/0/", memory=50),
        gpu("r", around="grp/1/", memory=60),
    )
    allocation = placed(offer, *[Container(gpu(0, memory=memory)) for memory in (60, 50, 100)])
    assert fits(allocation, 1.0)
    homes = [targets(mapping)["gpu/0"] for mapping in allocation.mappings]
    assert homes == ["grp/1/gpu/r", "grp/0/gpu/q", "grp/0/gpu/p"]


def test_siblings_get_locations_of_their_own_where_that_is_asked_for():
    """Upstream cannot express this: two groups of one card each, not both on one group of two."""
    wanted = Container({"grp/A/cards": 1, "grp/B/cards": 1})
    offer = {"grp/X/cards": 2, "grp/Y/cards": 2}
    assert set(placed(offer, wanted).mappings[0].values()) == {"grp/X/cards"}
    assert set(placed(offer, wanted, distinct=True).mappings[0].values()) == {"grp/X/cards", "grp/Y/cards"}
    assert not placed({"grp/X/cards": 2}, wanted, distinct=True).feasible


def test_initialisation_takes_only_what_it_needs_beyond_the_running_containers():
    """GA-25, placed: running uses 100; an init container of 60 costs nothing more, one of 150 costs 50."""
    for asked, taken in ((60, 100), (150, 150)):
        allocation = placed({"memory": 200}, Container({"memory": 100}), Container({"memory": asked}, INITIALISATION))
        assert allocation.taken == {"memory": taken}
        # The score after the running container.
        assert allocation.score == 0.5
