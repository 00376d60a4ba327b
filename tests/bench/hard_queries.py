"""Queries for candidates as hard as a client can make them, on clouds with pools, for ``tests.bench.costly``.

Each kind once took many seconds to answer; its amounts and conditions are drawn at random.
"""

import random
from collections.abc import Callable, Iterator

from tests.bench.clouds import FEATURES, POOLS
from tests.bench.rows import provider_uuid

AGGREGATE_UUIDS = [provider_uuid(f"aggregate{number}") for number in range(POOLS)]


def on_pools(choice: random.Random) -> str:
    """Return a query of one kind, with a typical limit or without one."""
    parts = [*choice.choice(KINDS)(choice)]
    if choice.random() < 0.3:
        parts += _of_everything(choice)
    parts.append(f"group_policy={choice.choice(('none', 'isolate'))}")
    return "&".join(parts + ([f"limit={choice.choice((1, 10, 400, 1000))}"] if choice.random() < 0.9 else []))


def _equal_groups(choice: random.Random) -> Iterator[str]:
    """Equal groups for a class that only pools have."""
    yield from _groups("P", choice.randint(2, 8), "IPV4_ADDRESS:1")


def _tied_groups(choice: random.Random) -> Iterator[str]:
    """Equal groups with same_subtree, either on two of them or on two groups for the host."""
    yield from _groups("P", choice.randint(2, 6), "IPV4_ADDRESS:1")
    if choice.random() < 0.5:
        yield "same_subtree=_P0,_P1"
    else:
        yield from _groups("H", 2, choice.choice(("VCPU:1", "SRIOV_NET_VF:1")))
        yield "same_subtree=_H0,_H1"


def _too_large_for_two(choice: random.Random) -> Iterator[str]:
    """Groups of which a pool can serve only one: usually there are no candidates."""
    yield from _groups("D", choice.randint(2, 3), f"DISK_GB:{choice.choice((900, 1100, 1500))}")


def _beside_pools(choice: random.Random) -> Iterator[str]:
    """Groups that barely fit on the host, beside many on pools."""
    yield f"resources_VF=SRIOV_NET_VF:{choice.choice((1, 4, 5))}"
    yield "required_VF=" + choice.choice(("HW_NIC_SRIOV", "HW_NIC_OFFLOAD_GENEVE"))
    yield from _groups("P", choice.randint(3, 6), "IPV4_ADDRESS:1")


def _long_lists(choice: random.Random) -> Iterator[str]:
    """Membership in any of hundreds of aggregates, several times."""
    yield "resources=VCPU:1"
    yield from _groups("P", choice.randint(1, 3), choice.choice(("IPV4_ADDRESS:1", "DISK_GB:10")))
    for suffix in ("", "_P0"):
        for _ in range(choice.randint(1, 3)):
            yield f"member_of{suffix}=in:" + ",".join(choice.sample(AGGREGATE_UUIDS, choice.choice((50, 199, 200))))


def _prohibited(choice: random.Random) -> Iterator[str]:
    """Many forbidden traits, some of which all hosts have."""
    yield "resources=VCPU:1,IPV4_ADDRESS:1"
    yield "required=" + ",".join(f"!{name}" for name in choice.sample(FEATURES, choice.randint(1, 20)))
    yield from _groups("P", choice.randint(0, 3), choice.choice(("IPV4_ADDRESS:1", "VCPU:1")))


def _of_everything(choice: random.Random) -> Iterator[str]:
    yield "resources=" + choice.choice(("VCPU:1", "VCPU:1,MEMORY_MB:1024", "DISK_GB:10", "IPV4_ADDRESS:2"))
    if choice.random() < 0.5:
        yield "required=" + ",".join(choice.sample(FEATURES, choice.randint(1, 4)))


def _groups(prefix: str, count: int, resources: str) -> Iterator[str]:
    for number in range(count):
        yield f"resources_{prefix}{number}={resources}"


KINDS: tuple[Callable[[random.Random], Iterator[str]], ...] = (
    _equal_groups,
    _tied_groups,
    _too_large_for_two,
    _beside_pools,
    _long_lists,
    _prohibited,
)
