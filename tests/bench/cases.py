"""The cases that are measured and the bars they have to meet."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from tests.bench import queries
from tests.bench.sides import Order
from tests.bench.work import (
    ClaimAndFree,
    Get,
    InTurn,
    Register,
    Work,
    candidates,
    claim_on_flat,
    claim_on_nested,
    of_provider,
)

FULL = 0.6


@dataclass(frozen=True, slots=True)
class Bar:
    """The bound of a measured number, a minimum (``at_least``) or a maximum; ``aim`` is the target."""

    value: float
    aim: float | None = None
    at_least: bool = True

    def missed_by(self, measured: float) -> float:
        """Return the factor by which a number misses the bar; 1 or less where the bar is met."""
        return self.value / measured if self.at_least else measured / self.value


@dataclass(frozen=True, slots=True)
class Place:
    """A cloud, how full it is, and the order in which our server returns candidates."""

    cloud: str
    fill: float = FULL
    order: Order = Order.NONE

    def __str__(self) -> str:
        fill = f"{self.fill:.0%} full" if self.fill else "empty"
        return f"{self.cloud}, {fill}" + (f", {self.order.value}" if self.order is not Order.NONE else "")


@dataclass(frozen=True, slots=True)
class Case:
    """The same work on the reference and on ours.

    ``times`` bounds the ratio of CPU times, ``cpu_ms`` our own CPU time. ``hopeless`` marks work that the reference is
    known not to finish: it is tried once.
    """

    name: str
    place: Place
    work: Callable[[], Work]
    times: Bar | None = None
    cpu_ms: Bar | None = None
    expected: int | None = None
    hopeless: bool = False


@dataclass(frozen=True, slots=True)
class OwnCase:
    """Two kinds of work on our server: ``times`` bounds how much more the second costs."""

    name: str
    first: tuple[Place, Callable[[], Work]]
    second: tuple[Place, Callable[[], Work]]
    times: Bar


@dataclass(frozen=True, slots=True)
class OrderCase:
    """The same request to our server, unordered and ordered.

    ``times`` bounds how much more the ordered request costs, ``per_tree_us`` the extra cost per tree of the cloud.
    """

    name: str
    cloud: str
    work: Callable[[], Work]
    trees: int
    times: Bar | None = None
    per_tree_us: Bar | None = None


@dataclass(frozen=True, slots=True)
class StampedeCase:
    """Clients that claim the first candidate: unordered, ordered, and ordered with ties broken at random."""

    name: str
    cloud: str
    query: str
    clients: int
    times: Bar


@dataclass(frozen=True, slots=True)
class ClaimCase:
    """Clients that claim as fast as they can: ``times`` bounds the ratio of claims per second."""

    name: str
    place: Place
    query: str
    clients: int
    times: Bar | None = None


def asked(query: str, limit: int | None = None) -> Callable[[], Work]:
    """Return a factory of requests for candidates."""
    return partial(candidates, query, limit=limit)


def _limits(place: Place, name: str, query: str, bars: dict[int | None, Bar | None]) -> Iterator[Case]:
    for limit, bar in bars.items():
        text = f"limit={limit}" if limit else "no limit"
        yield Case(f"{name}, {text}", place, asked(query, limit), times=bar)


FEW = Bar(60, 100)
MANY = Bar(7, 20)
NO_BAR: dict[int | None, Bar | None] = {10: None, None: None}


def candidate_cases() -> Iterator[Case]:
    """Yield requests for candidates in clouds of many hosts."""
    bars: dict[int | None, Bar | None]
    for hosts in (100, 1000, 10000):
        bars = {10: Bar(100, 200)} if hosts == 10000 else {10: None, None: None}
        if hosts == 1000:
            bars = {10: None, 1000: MANY, None: MANY}
        yield from _limits(Place(f"flat-{hosts}"), "3 classes", queries.SIMPLE, bars)
    for hosts in (100, 1000, 10000):
        bars = {10: FEW, 1000: MANY, None: MANY} if hosts == 1000 else {10: None}
        yield from _limits(Place(f"nested-{hosts}"), "gate query", queries.GATE, bars)
        if hosts < 10000:
            yield from _limits(Place(f"nested-{hosts}"), "3 classes unsuffixed", queries.SIMPLE, bars)
    for hosts in (100, 1000):
        large = hosts == 1000
        bars = {10: FEW if large else None, None: None}
        yield from _limits(Place(f"numa-gpu-{hosts}"), "NUMA + GPU, same_subtree", queries.NUMA_AND_GPU, bars)
        bars = {10: FEW if large else None, None: Bar(8, 20) if large else None}
        yield from _limits(Place(f"numa-gpu-{hosts}"), "2 GPUs + NIC, isolate", queries.TWO_GPUS_AND_NIC, bars)
        yield from _limits(Place(f"shared-{hosts}"), "3 classes", queries.SIMPLE, NO_BAR)
        yield from _limits(Place(f"shared-{hosts}"), "two groups, isolate", queries.APART, NO_BAR)
    yield from _limits(Place("nested-1000", 0.0), "gate query", queries.GATE, NO_BAR)
    yield from _limits(Place("flat-1000", 0.0), "3 classes", queries.SIMPLE, NO_BAR)


def cliff_cases() -> Iterator[Case]:
    """Yield requests that the reference cannot finish."""
    fast, faster = Bar(200, at_least=False), Bar(100, at_least=False)
    eight, sixteen, switches = Place("wide-8", 0.0), Place("wide-16", 0.0), Place("pcie-8", 0.0)
    for place, groups in ((eight, 8), (sixteen, 8), (sixteen, 16)):
        work = asked(queries.devices(groups), 1000)
        yield Case(f"{groups} groups, isolate, limit=1000", place, work, cpu_ms=fast, expected=1000, hopeless=True)
    yield Case("4 groups, isolate, limit=10", Place("wide-8", 0.0), asked(queries.devices(4), 10), hopeless=True)
    impossible = asked(queries.devices(9), 1000)
    yield Case("9 groups, isolate, limit=1000", eight, impossible, expected=0, hopeless=True)
    pairs = asked(queries.gpu_nic_pairs(3))
    yield Case("3 GPU + NIC pairs, no limit", switches, pairs, cpu_ms=faster, expected=336, hopeless=True)


def small_cases() -> Iterator[Case]:
    """Yield reads of a single provider, then writes."""
    place = Place("flat-1000")
    for what in ("inventories", "usages", "allocations", "aggregates", "traits"):
        yield Case(f"GET {what} of one", place, partial(of_provider, "host500", what), times=Bar(3, 5))
    writes = Bar(4, 8)
    for cloud, claim in (("flat-1000", claim_on_flat), ("nested-1000", claim_on_nested)):
        work = partial(ClaimAndFree, claim("host500"))
        yield Case("PUT + DELETE allocation", Place(cloud), work, times=writes)
    yield Case("register a provider, inventories, traits", place, Register, times=writes)


def claim_cases() -> Iterator[ClaimCase]:
    """Yield cases of claiming clients."""
    for clients in (1, 4, 8):
        yield ClaimCase("claim", Place("nested-1000"), queries.GATE, clients, times=Bar(20, 40))


def own_cases() -> Iterator[OwnCase]:
    """Yield work that must not cost much more than other work."""
    more, little, explained = (Bar(times, at_least=False) for times in (1.5, 1.2, 5))
    for cloud, query in (("flat", queries.SIMPLE), ("nested", queries.GATE)):
        few = asked(query, 10)
        hosts = (Place(f"{cloud}-1000"), few), (Place(f"{cloud}-10000"), few)
        yield OwnCase(f"{cloud}, limit=10: 1,000 to 10,000 hosts", *hosts, more)
        fills = (Place(f"{cloud}-1000", 0.0), few), (Place(f"{cloud}-1000"), few)
        yield OwnCase(f"{cloud}-1000, limit=10: empty to 60 % full", *fills, little)
        every = asked(query)
        fills = (Place(f"{cloud}-1000", 0.0), every), (Place(f"{cloud}-1000"), every)
        yield OwnCase(f"{cloud}-1000, no limit: empty to 60 % full", *fills, little)
    for name, query in (("trait", queries.GATE_WITHOUT_NICS), ("room", queries.ON_CROWDED_NODES)):
        empty = (
            (Place("nested-1000"), asked(query)),
            (Place("nested-1000"), partial(Get, f"/planner/v1/explain?{query}")),
        )
        yield OwnCase(f"nested-1000, nothing found for want of {name}: plain to explained", *empty, explained)
    wide = Place("wide-8", 0.0)
    groups = (wide, asked(queries.devices(8), 1000)), (wide, asked(queries.devices(9), 1000))
    yield OwnCase("wide-8, isolate: 8 groups (possible) to 9 (impossible)", *groups, Bar(1, at_least=False))


ORDERED = Bar(15, 40)
ALL_ORDERED = Bar(12)


def ordered_cases() -> Iterator[Case]:
    """Yield requests for candidates in best-first order, compared with the reference."""
    best = Order.BEST_FIRST
    yield from _limits(Place("flat-10000", order=best), "3 classes", queries.SIMPLE, {10: ORDERED})
    nested = Place("nested-1000", order=best)
    bars: dict[int | None, Bar | None] = {10: ORDERED, None: ALL_ORDERED}
    yield from _limits(nested, "gate query", queries.GATE, bars)
    yield from _limits(nested, "3 classes unsuffixed", queries.SIMPLE, bars)
    changed_between = partial(InTurn, (ClaimAndFree(claim_on_nested("host500")), asked(queries.GATE)()))
    yield Case("PUT + DELETE allocation, then gate query, no limit", nested, changed_between, times=ALL_ORDERED)
    place = Place("numa-gpu-1000", order=best)
    yield from _limits(place, "NUMA + GPU, same_subtree", queries.NUMA_AND_GPU, {10: ORDERED})
    yield from _limits(place, "2 GPUs + NIC, isolate", queries.TWO_GPUS_AND_NIC, {10: ORDERED})


def order_cases() -> Iterator[OrderCase]:
    """Yield the cases that bound the cost of ordering."""
    works = (
        ("flat", 1000, "3 classes", queries.SIMPLE),
        ("flat", 10000, "3 classes", queries.SIMPLE),
        ("nested", 1000, "gate query", queries.GATE),
        ("nested", 1000, "3 classes unsuffixed", queries.SIMPLE),
        ("numa-gpu", 1000, "2 GPUs + NIC, isolate", queries.TWO_GPUS_AND_NIC),
    )
    little, more = Bar(10, at_least=False), Bar(1.3, at_least=False)
    for shape, hosts, name, query in works:
        cloud = f"{shape}-{hosts}"
        yield OrderCase(f"{name}, limit=10", cloud, asked(query, 10), hosts, per_tree_us=little)
        if hosts < 10000:
            yield OrderCase(f"{name}, no limit", cloud, asked(query), hosts, times=more)


def stampede_cases() -> Iterator[StampedeCase]:
    """Yield clients that all want the best host."""
    for clients in (8, 32):
        yield StampedeCase("claim the first of 10", "nested-1000", queries.GATE, clients, Bar(1, at_least=True))
