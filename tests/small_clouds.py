"""Small random clouds and requests, as rows and as columns."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random

import numpy as np
from hypothesis import strategies as st
from sqlalchemy import Connection, Table, insert, select, text

from placement.candidates.explain.masks import ConditionMasks
from placement.candidates.serving import Serving
from placement.cloud.columns import CloudColumns, CloudRows
from placement.cloud.providers import NO_PARENT, Flags, ProviderColumns
from placement.domain.search_plan import CandidateRequest, NamedIds, RequestGroup, plan_for
from placement.store import tables
from placement.store.connection.database import Database
from tests.clouds import SHARES

CLASSES = ("VCPU", "MEMORY_MB", "DISK_GB")
TRAITS = ("HW_CPU_X86_AVX2", "HW_NUMA_ROOT", "STORAGE_DISK_SSD")
AGGREGATES = ("aaaaaaaa-0000-4000-8000-000000000001", "aaaaaaaa-0000-4000-8000-000000000002")
UNKNOWN_TREE = "ffffffff-0000-4000-8000-000000000000"
SUFFIXES = ("_A", "_B", "_C")
TREES, MAX_PROVIDERS = 3, 8


@dataclass(frozen=True)
class Inventory:
    total: int
    used: int = 0
    min_unit: int = 1
    max_unit: int = 2**31 - 1
    step_size: int = 1
    reserved: int = 0
    allocation_ratio: float = 1.0

    @property
    def left(self) -> float:
        return (self.total - self.reserved) * self.allocation_ratio - self.used

    @property
    def units(self) -> tuple[int, int, int]:
        return self.min_unit, self.max_unit, self.step_size

    def fits(self, amount: int) -> bool:
        return self.min_unit <= amount <= min(self.left, self.max_unit) and amount % self.step_size == 0


@dataclass(frozen=True)
class Node:
    """A provider; ``parent`` and ``root`` are ids."""

    id: int
    parent: int | None
    root: int
    inventories: Mapping[str, Inventory] = field(default_factory=dict)
    traits: frozenset[str] = frozenset()
    aggregates: frozenset[str] = frozenset()

    @property
    def uuid(self) -> str:
        return uuid_of(self.id)


Cloud = dict[int, Node]


def uuid_of(id_: int) -> str:
    return f"00000000-0000-4000-8000-{id_:012}"


def random_inventory(chance: Random) -> Inventory:
    return Inventory(
        total=chance.randint(2, 6),
        used=chance.choice((0, 0, 0, 1, 2)),
        min_unit=chance.choice((1, 1, 1, 1, 2)),
        max_unit=chance.choice((2**31 - 1, 2**31 - 1, 2**31 - 1, 4, 2)),
        step_size=chance.choice((1, 1, 1, 1, 2)),
        reserved=chance.choice((0, 0, 1)),
        allocation_ratio=chance.choice((1.0, 1.0, 1.5)),
    )


def some(chance: Random, values: Sequence[str], most: int) -> frozenset[str]:
    return frozenset(chance.sample(values, chance.randint(0, most)))


def random_cloud(chance: Random) -> Cloud:
    cloud: Cloud = {}
    for id_ in range(1, chance.randint(2, MAX_PROVIDERS) + 1):
        trees = sum(node.parent is None for node in cloud.values())
        parent = None if not cloud or (trees < TREES and chance.random() < 0.4) else chance.choice(sorted(cloud))
        traits = some(chance, TRAITS, 2) | (frozenset({SHARES}) if chance.random() < 0.12 else frozenset())
        cloud[id_] = Node(
            id_,
            parent,
            id_ if parent is None else cloud[parent].root,
            {name: random_inventory(chance) for name in CLASSES if chance.random() < 0.7},
            traits,
            some(chance, AGGREGATES, 2),
        )
    return cloud


def random_sets(chance: Random, values: Sequence[str]) -> tuple[frozenset[str], ...]:
    found = (frozenset(chance.sample(values, chance.choice((1, 1, 2)))) for _ in range(chance.choice((1, 1, 2))))
    return tuple(dict.fromkeys(found))


CONDITIONS: Mapping[str, Callable[[Random], object]] = {
    "required": lambda chance: random_sets(chance, TRAITS),
    "forbidden": lambda chance: frozenset(chance.sample(TRAITS, chance.choice((1, 1, 2)))),
    "member_of": lambda chance: random_sets(chance, AGGREGATES),
    "forbidden_aggregates": lambda chance: frozenset(chance.sample(AGGREGATES, 1)),
    "in_tree": lambda chance: chance.choice((uuid_of(1), uuid_of(2), uuid_of(3), UNKNOWN_TREE)),
}
"""What draws each condition of a group, by its name in ``RequestGroup``."""


def random_group(chance: Random, suffix: str, *, has_resources: bool = True) -> RequestGroup:
    """Return a group with one or two conditions: a group with all of them hardly ever has a near miss."""
    names = chance.sample(CLASSES, chance.choice((1, 1, 2)))
    chosen = chance.sample(sorted(CONDITIONS), chance.choice((0, 0, 1, 1, 2)))
    return RequestGroup(
        suffix=suffix,
        resources={name: chance.randint(1, 4) for name in names} if has_resources else {},
        **{name: CONDITIONS[name](chance) for name in chosen},
    )


def random_request(chance: Random) -> CandidateRequest:
    suffixes = chance.sample(SUFFIXES, chance.randint(0, 3))
    found = [random_group(chance, suffix) for suffix in suffixes]
    if suffixes and chance.random() < 0.3:
        found[0] = replace(found[-1], suffix=found[0].suffix)
    if not found or chance.random() < 0.5:
        found.append(random_group(chance, ""))
    tied = []
    if suffixes and chance.random() < 0.4:
        tied = [
            frozenset(chance.sample(suffixes, chance.randint(1, len(suffixes)))) for _ in range(chance.randint(1, 2))
        ]
    if suffixes and chance.random() < 0.15:
        found.append(random_group(chance, "_R", has_resources=False))
        tied.append(frozenset({"_R", suffixes[0]}))
    return CandidateRequest(
        groups=tuple(found),
        isolate=chance.random() < 0.5,
        same_subtree=tuple(dict.fromkeys(tied)),
        root_required=frozenset(filter(None, [some(chance, TRAITS, 2)])) if chance.random() < 0.2 else frozenset(),
        root_forbidden=some(chance, TRAITS, 1) if chance.random() < 0.2 else frozenset(),
        combines_nested=chance.random() < 0.85,
    )


def with_twins(chance: Random, cloud: Cloud) -> Cloud:
    """Return a cloud in which each tree has a twin in the same aggregates, apart from the usage of some providers."""
    found = dict(cloud)
    for node in cloud.values():
        id_, root = node.id + MAX_PROVIDERS, node.root + MAX_PROVIDERS
        parent = None if node.parent is None else node.parent + MAX_PROVIDERS
        stocks = dict(node.inventories)
        if chance.random() < 0.2:
            stocks = {name: replace(stock, used=chance.choice((0, 1, 2))) for name, stock in stocks.items()}
        found[id_] = replace(node, id=id_, parent=parent, root=root, inventories=stocks)
    return found


def random_situation(seed: int) -> tuple[CandidateRequest, Cloud]:
    chance = Random(seed)
    request, cloud = random_request(chance), random_cloud(chance)
    return request, cloud if chance.random() < 0.8 else with_twins(chance, cloud)


situations = st.integers(0, 2**32).map(random_situation)
"""A request and a cloud. Hypothesis draws only the seed, because it is slow for large structures."""


def masks_of(request: CandidateRequest, cloud: Cloud) -> ConditionMasks:
    """Return the conditions of a request in a cloud in memory, as the store would find who meets them."""
    ids, columns = ids_of(cloud), columns_of(cloud)
    sets = SetsInMemory(cloud, ids, columns.providers)
    return ConditionMasks(Serving(plan_for(request), ids, columns=columns, sets=sets))


def ids_of(cloud: Cloud) -> NamedIds:
    """Return the ids of all names in a cloud in memory."""
    traits, aggregates = (
        {name: number for number, name in enumerate(of_kind, 1)} for of_kind in ((*TRAITS, SHARES), AGGREGATES)
    )
    return NamedIds(
        classes={name: number for number, name in enumerate(CLASSES)},
        traits=traits,
        aggregates=aggregates,
        roots={node.uuid: node.root for node in cloud.values()},
        shares=any(SHARES in node.traits for node in cloud.values()),
    )


def columns_of(cloud: Cloud) -> CloudColumns:
    """Return a cloud as columns."""
    stocks = [
        (node.id, CLASSES.index(name), stock.left + stock.used, stock.used, *stock.units)
        for node in cloud.values()
        for name, stock in node.inventories.items()
    ]
    providers = [(node.root, node.id, node.parent or NO_PARENT) for node in cloud.values()]
    return CloudColumns.from_rows(CloudRows(providers, stocks))


@dataclass(frozen=True)
class SetsInMemory:
    """The sets of providers that meet conditions in a cloud in memory."""

    cloud: Cloud
    ids: NamedIds
    providers: ProviderColumns

    def with_trait(self, trait_id: int) -> Flags:
        owned = {name for name, id_ in self.ids.traits.items() if id_ == trait_id}
        return self._flags([not owned.isdisjoint(self.cloud[id_].traits) for id_ in self.providers.ids.tolist()])

    def in_aggregate(self, aggregate_id: int) -> Flags:
        shared = {name for name, id_ in self.ids.aggregates.items() if id_ == aggregate_id}
        return self._flags([not shared.isdisjoint(self.cloud[id_].aggregates) for id_ in self.providers.ids.tolist()])

    def aggregates_of(self, providers: Collection[int]) -> Mapping[int, Collection[int]]:
        found = {id_: [self.ids.aggregates[name] for name in self.cloud[id_].aggregates] for id_ in providers}
        return {id_: aggregates for id_, aggregates in found.items() if aggregates}

    def read(self, *, traits: Collection[int] = (), aggregates: Collection[int] = ()) -> None:
        """Do nothing: all is in memory."""

    def _flags(self, values: Sequence[bool]) -> Flags:
        return np.array(values, dtype=bool)


def shares_of(cloud: Cloud) -> dict[int, list[int]]:
    found = {}
    for sharing in cloud.values():
        trees = {node.root for node in cloud.values() if node.aggregates & sharing.aggregates}
        if SHARES in sharing.traits and trees:
            found[sharing.id] = sorted(trees)
    return found


def load(database: Database, cloud: Cloud) -> None:
    """Replace the contents of a database with a cloud."""
    with database.writer.begin() as connection:
        _write(connection, cloud)


def _write(connection: Connection, cloud: Cloud) -> None:
    for table in ("allocations", "inventories", "resource_provider_traits", "resource_provider_aggregates"):
        connection.execute(text(f"DELETE FROM {table}"))
    connection.execute(text("UPDATE resource_providers SET root_provider_id = NULL, parent_provider_id = NULL"))
    for table in ("resource_providers", "provider_usages", "placement_aggregates"):
        connection.execute(text(f"DELETE FROM {table}"))
    for table, rows in _rows(connection, cloud).items():
        if rows:
            connection.execute(insert(table), rows)


def _rows(connection: Connection, cloud: Cloud) -> dict[Table, list[dict[str, object]]]:
    """Return the rows of a cloud by table, in an order that foreign keys allow."""
    class_ids, trait_ids = (
        {row.name: row.id for row in connection.execute(select(table.c.id, table.c.name))}
        for table in (tables.resource_classes, tables.traits)
    )
    rows: dict[Table, list[dict[str, object]]] = {
        tables.placement_aggregates: [{"id": number, "uuid": uuid} for number, uuid in enumerate(AGGREGATES, start=1)],
        tables.resource_providers: [],
        tables.resource_provider_traits: [],
        tables.resource_provider_aggregates: [],
        tables.inventories: [],
        tables.allocations: [],
    }
    for node in cloud.values():
        of_node = {"resource_provider_id": node.id}
        places = {"parent_provider_id": node.parent, "root_provider_id": node.root}
        provider = {"id": node.id, "uuid": node.uuid, "name": f"node{node.id}", "generation": 0, **places}
        rows[tables.resource_providers].append(provider)
        rows[tables.resource_provider_traits] += [{**of_node, "trait_id": trait_ids[name]} for name in node.traits]
        rows[tables.resource_provider_aggregates] += [
            {**of_node, "aggregate_id": AGGREGATES.index(aggregate) + 1} for aggregate in node.aggregates
        ]
        for name, stock in node.inventories.items():
            of_class = {**of_node, "resource_class_id": class_ids[name]}
            fields = {key: value for key, value in vars(stock).items() if key != "used"}
            rows[tables.inventories].append({**of_class, **fields})
            if stock.used:
                rows[tables.allocations].append({**of_class, "consumer_id": "consumer", "used": stock.used})
    return rows
