"""The rows of a cloud in the reference's tables, written in bulk."""

import itertools
import random
import uuid
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import psycopg

from tests.bench.clouds import AGGREGATES, CUSTOM_TRAITS, Node, cloud

CONSUMERS_PER_HOST = 12
NAMESPACE = uuid.UUID("6f1c0d2e-0000-4000-8000-000000000000")

COLUMNS = {
    "resource_providers": ("id", "uuid", "name", "generation", "parent_provider_id", "root_provider_id"),
    "inventories": (
        "resource_provider_id",
        "resource_class_id",
        "total",
        "reserved",
        "min_unit",
        "max_unit",
        "step_size",
        "allocation_ratio",
    ),
    "resource_provider_traits": ("resource_provider_id", "trait_id"),
    "resource_provider_aggregates": ("resource_provider_id", "aggregate_id"),
    "consumers": ("uuid", "project_id", "user_id", "generation"),
    "allocations": ("resource_provider_id", "resource_class_id", "consumer_id", "used"),
}

Row = tuple[Any, ...]
Connection = psycopg.Connection[Any]


def provider_uuid(name: str) -> str:
    """Return the uuid of the provider with this name, the same in every cloud."""
    return str(uuid.uuid5(NAMESPACE, name))


@dataclass(slots=True)
class Rows:
    """The rows of a cloud by table.

    Args:
        classes: ids by name.
        traits: ids by name.
        fill: the share of everything that is in use in added trees.
        consumers: the number of consumers in each tree.
        projects: the number of projects that consumers are assigned to in turn.
        is_uneven: whether each provider's usage is random, so that hardly two hosts are alike.
        tables: the rows.
    """

    classes: Mapping[str, int]
    traits: Mapping[str, int]
    fill: float
    consumers: int = CONSUMERS_PER_HOST
    projects: int = 1
    is_uneven: bool = False
    tables: dict[str, list[Row]] = field(default_factory=lambda: {name: [] for name in COLUMNS})
    _ids: Iterable[int] = field(default_factory=lambda: itertools.count(1))
    _chance: random.Random = field(default_factory=lambda: random.Random(1))

    def add_tree(self, root: Node) -> None:
        """Add a tree; ids ascend tree by tree, as they do in a cloud that grew."""
        nodes = self._add(root, None, None)
        if self.fill:
            self._fill(nodes)

    def clear(self) -> None:
        """Remove the rows; ids continue."""
        for rows in self.tables.values():
            rows.clear()

    def _add(self, node: Node, parent: int | None, root: int | None) -> list[tuple[int, Node]]:
        id_ = next(iter(self._ids))
        root = root or id_
        self.tables["resource_providers"].append((id_, provider_uuid(node.name), node.name, 1, parent, root))
        for name, total in node.inventory.items():
            self.tables["inventories"].append((id_, self.classes[name], total, 0, 1, total, 1, 1.0))
        self.tables["resource_provider_traits"] += [(id_, self.traits[trait]) for trait in node.traits]
        self.tables["resource_provider_aggregates"] += [(id_, number + 1) for number in node.aggregates]
        below = [pair for child in node.children for pair in self._add(child, id_, root)]
        return [(id_, node), *below]

    def _fill(self, nodes: list[tuple[int, Node]]) -> None:
        """Divide a tree's usage among its consumers; every other single-unit device is in use."""
        consumers = [str(uuid.UUID(int=self._chance.getrandbits(128))) for _ in range(self.consumers)]
        holders = Counter(name for _, node in nodes for name in node.inventory)
        seen: Counter[str] = Counter()
        holding: set[str] = set()
        for id_, node in nodes:
            for name, total in node.inventory.items():
                portions = self.consumers // holders[name] or 1
                first = seen[name] * portions
                seen[name] += 1
                amount = self._used_of(total, seen[name])
                for portion, used in enumerate(_shared_out(amount, portions)):
                    consumer = consumers[(first + portion) % self.consumers]
                    holding.add(consumer)
                    self.tables["allocations"].append((id_, self.classes[name], consumer, used))
        known = self.tables["consumers"]
        for consumer in consumers:
            if consumer in holding:
                known.append((consumer, 1 + len(known) % self.projects, 1, 1))

    def _used_of(self, total: int, number: int) -> int:
        """Return how much of the n-th inventory of a class is in use."""
        if self.is_uneven:
            return round(self._chance.triangular(0, total, total * self.fill))
        return number % 2 if total == 1 else int(total * self.fill)


def _shared_out(amount: int, portions: int) -> list[int]:
    """Return an amount divided into nearly equal portions, without those of zero."""
    each, more = divmod(amount, portions)
    return [size for index in range(portions) if (size := each + (index < more))]


def write_cloud(connection: Connection, name: str, *, fill: float, is_uneven: bool = False) -> None:
    """Write all rows of a cloud into a database that has the tables and the standard names."""
    with connection.transaction():
        _write_names(connection)
        names = [_ids_by_name(connection, table) for table in ("resource_classes", "traits")]
        rows = Rows(*names, fill, is_uneven=is_uneven)
        for root in cloud(name):
            rows.add_tree(root)
        _write_aggregates(
            connection, max([AGGREGATES, *(row[1] for row in rows.tables["resource_provider_aggregates"])])
        )
        for table, columns in COLUMNS.items():
            with connection.cursor().copy(f"COPY {table} ({', '.join(columns)}) FROM STDIN") as copy:
                for row in rows.tables[table]:
                    copy.write_row(row)
        next_id = len(rows.tables["resource_providers"]) + 1
        connection.execute(f"ALTER SEQUENCE resource_providers_id_seq RESTART WITH {next_id}")


def _write_names(connection: Connection) -> None:
    with connection.cursor() as cursor:
        cursor.executemany("INSERT INTO traits (name) VALUES (%s)", [(name,) for name in CUSTOM_TRAITS])
        cursor.execute("INSERT INTO projects (external_id) VALUES ('bench')")
        cursor.execute("INSERT INTO users (external_id) VALUES ('bench')")


def _write_aggregates(connection: Connection, count: int) -> None:
    with connection.cursor() as cursor:
        aggregates = [(provider_uuid(f"aggregate{number}"),) for number in range(count)]
        cursor.executemany("INSERT INTO placement_aggregates (uuid) VALUES (%s)", aggregates)


def _ids_by_name(connection: Connection, table: str) -> dict[str, int]:
    return dict(connection.execute(f"SELECT name, id FROM {table}").fetchall())
