"""Random clouds: hosts with devices and locks, alike hosts, pools, and clouds that requests create."""

import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from sqlalchemy import Connection, text

from placement.services.names import ensure_class, ensure_trait
from placement.store.connection.database import Database
from tests import planner_clouds, small_clouds
from tests.bench import clouds as large_clouds
from tests.clouds import SHARES
from tests.differential.generate.cloud import cloud as requested_cloud
from tests.differential.generate.world import CONSUMER_TYPES, PROJECTS, USERS, World
from tests.differential.requests import Request
from tests.small_clouds import AGGREGATES, Cloud, Inventory, Node, uuid_of

FIRST_NEW_ID = 10_000
"""Of providers and aggregates that requests create later; all others are stored with fixed ids."""

NUMBERED = (
    "resource_providers",
    "placement_aggregates",
    "consumers",
    "allocations",
    "projects",
    "users",
    "consumer_types",
)
USED = (0, 0, 0.3, 0.5, 0.9)


@dataclass(frozen=True, slots=True)
class Rows:
    """What is stored before the first request."""

    cloud: Cloud = field(default_factory=dict)
    traits: Sequence[str] = ()
    classes: Sequence[str] = ()
    """Custom ones."""


@dataclass(slots=True)
class Scene:
    """A cloud, and what the round knows of it."""

    kind: str
    world: World
    rows: Rows
    opening: Sequence[Request] = ()
    """Requests that create the cloud if it is not stored."""


def random_scene(chance: Random) -> Scene:
    """Return the cloud of a round."""
    kind = chance.choices(("devices", "alike", "plain", "large", "requested"), (30, 25, 10, 25, 10))[0]
    if kind == "requested":
        world = World(chance)
        return Scene(kind, world, Rows(), list(requested_cloud(world)))
    cloud = _CLOUDS[kind](chance)
    return Scene(kind, _world(chance, cloud), _rows(cloud))


def _devices(chance: Random) -> Cloud:
    return _at_work(chance, planner_clouds.random_cloud(chance))


def _alike(chance: Random) -> Cloud:
    number, models = chance.choice((3, 4, 6, 8, 24, 40)), chance.choice((None, 1, 2, 3))
    hosts = planner_clouds.random_hosts(chance, number, models=models, pools=chance.choice((0, 0, 1, 2)))
    return _at_work(chance, hosts)


def _at_work(chance: Random, cloud: Cloud) -> Cloud:
    """Return the cloud, perhaps with other usage, perhaps without locks or without sharing providers."""
    if chance.random() < 0.5:
        cloud = planner_clouds.at_work(chance, cloud)
    without = {name for name in planner_clouds.LOCKS.values() if chance.random() < 0.4}
    shares = chance.random() < 0.6
    return {
        id_: replace(
            node,
            inventories={name: each for name, each in node.inventories.items() if name not in without},
            traits=node.traits if shares else node.traits - {SHARES},
        )
        for id_, node in cloud.items()
    }


def _large(chance: Random) -> Cloud:
    """Return hosts of one of the shapes that are measured, or of all, at the same or at random usage."""
    name = chance.choice(("mixed-40", "numa-gpu-18", "nested-20", "nested-40", "flat-60", "shared-40", "pcie-8"))
    cloud: Cloud = {}
    share, is_even = chance.choice(USED), chance.random() < 0.4
    for root in large_clouds.cloud(name):
        _add(cloud, root, None, lambda: share if is_even else chance.choice(USED) * chance.random())
    return cloud


def _add(cloud: Cloud, node: large_clouds.Node, parent: Node | None, used: Callable[[], float]) -> None:
    id_ = len(cloud) + 1
    inventories = {name: Inventory(total, used=int(total * used())) for name, total in node.inventory.items()}
    aggregates = frozenset(AGGREGATES[number % len(AGGREGATES)] for number in node.aggregates)
    root = parent.root if parent else id_
    cloud[id_] = Node(id_, parent and parent.id, root, inventories, frozenset(node.traits), aggregates)
    for child in node.children:
        _add(cloud, child, cloud[id_], used)


_CLOUDS: dict[str, Callable[[Random], Cloud]] = {
    "devices": _devices,
    "alike": _alike,
    "plain": small_clouds.random_cloud,
    "large": _large,
}


def _rows(cloud: Cloud) -> Rows:
    """Return what is stored of a cloud, with all names that requests may use."""
    traits = {*planner_clouds.TRAITS, planner_clouds.LEVELS["pcie"], planner_clouds.SOCKET, *large_clouds.CUSTOM_TRAITS}
    classes = {planner_clouds.LOCK, planner_clouds.DEVICE_LOCK}
    for node in cloud.values():
        traits |= node.traits
        classes |= set(node.inventories)
    return Rows(cloud, *(sorted(name for name in names if name.startswith("CUSTOM_")) for names in (traits, classes)))


def _world(chance: Random, cloud: Cloud) -> World:
    """Return the names of a stored cloud, so that queries ask for what it has."""
    world = World(chance)
    world.aggregates = list(AGGREGATES)
    for node in cloud.values():
        world.providers.append(node.uuid)
        world.parents[node.uuid] = None if node.parent is None else uuid_of(node.parent)
        world.inventories[node.uuid] = sorted(node.inventories)
        world.traits_of[node.uuid] = sorted(node.traits)
        world.aggregates_of[node.uuid] = sorted(node.aggregates)
    world.classes = sorted({name for names in world.inventories.values() for name in names}) or ["VCPU"]
    world.traits = sorted({*planner_clouds.TRAITS}.union(*world.traits_of.values()))
    used = [node.id for node in cloud.values() if any(each.used for each in node.inventories.values())]
    world.consumers += [holder_of(id_) for id_ in used[:20]]
    return world


def holder_of(provider: int) -> str:
    """Return the consumer that holds whatever is allocated of a provider at first."""
    return str(uuid.UUID(int=(0xC << 100) + provider, version=4))


def store(database: Database, rows: Rows) -> None:
    """Write a cloud into an empty database, with consumers of several projects."""
    for name in rows.traits:
        ensure_trait(database, name)
    for name in rows.classes:
        ensure_class(database, name)
    with database.writer.begin() as connection:
        _number_alike(connection)
    if rows.cloud:
        small_clouds.load(database, rows.cloud)
    with database.writer.begin() as connection:
        for statement, values in _consumers(rows.cloud):
            connection.execute(text(statement), values)


def _consumers(cloud: Cloud) -> Iterator[tuple[str, list[dict[str, object]]]]:
    holders = [
        {"id": id_, "uuid": holder_of(id_), "number": 1 + id_ % len(PROJECTS), "type": 1 + id_ % len(CONSUMER_TYPES)}
        for id_, node in cloud.items()
        if any(each.used for each in node.inventories.values())
    ]
    if not holders:
        return
    for table, column, names in (
        ("projects", "external_id", PROJECTS),
        ("users", "external_id", USERS),
        ("consumer_types", "name", CONSUMER_TYPES),
    ):
        values: list[dict[str, object]] = [{"id": id_, "name": name} for id_, name in enumerate(names, 1)]
        yield f"INSERT INTO {table} (id, {column}) VALUES (:id, :name)", values
    columns = "uuid, project_id, user_id, consumer_type_id, generation"
    yield f"INSERT INTO consumers ({columns}) VALUES (:uuid, :number, :number, :type, 1)", holders
    yield "UPDATE allocations SET consumer_id = :uuid WHERE resource_provider_id = :id", holders


def _number_alike(connection: Connection) -> None:
    """Let both databases number what is created from now on alike, whatever was refused before."""
    if connection.dialect.name == "postgresql":
        for table in NUMBERED:
            connection.execute(text(f"SELECT setval('{table}_id_seq', {FIRST_NEW_ID})"))
