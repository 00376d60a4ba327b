"""The rows of clouds of a given shape, written in bulk into a database of this server or of the reference."""

import random
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from sqlalchemy import Connection, insert, select, text

from placement.store.tables import metadata, placement_aggregates, projects, resource_classes, traits, users
from tests.bench.clouds import CUSTOM_TRAITS, POOLS, Node, cloud

CONSUMERS_PER_HOST = 12
WRITTEN_AT_ONCE = 10_000
NAMESPACE = uuid.UUID("6f1c0d2e-0000-4000-8000-000000000000")

COLUMNS = {
    "resource_providers": ("id", "uuid", "name", "generation", "parent_provider_id", "root_provider_id"),
    "inventories": (
        *("resource_provider_id", "resource_class_id", "total", "reserved"),
        *("min_unit", "max_unit", "step_size", "allocation_ratio"),
    ),
    "resource_provider_traits": ("resource_provider_id", "trait_id"),
    "resource_provider_aggregates": ("resource_provider_id", "aggregate_id"),
    "consumers": ("uuid", "project_id", "user_id", "generation"),
    "allocations": ("resource_provider_id", "resource_class_id", "consumer_id", "used"),
}

Row = tuple[Any, ...]


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
        chance: what is random.
    """

    classes: Mapping[str, int]
    traits: Mapping[str, int]
    fill: float = 0.0
    consumers: int = CONSUMERS_PER_HOST
    projects: int = 1
    is_uneven: bool = False
    tables: dict[str, list[Row]] = field(default_factory=lambda: {name: [] for name in COLUMNS})
    chance: random.Random = field(default_factory=lambda: random.Random(1))
    _ids: Iterator[int] = field(default_factory=lambda: count(1))

    def add_tree(self, root: Node) -> None:
        """Add a tree; ids ascend tree by tree, as they do in a cloud that grew."""
        nodes = self.add_providers(root)
        if self.fill:
            self._fill(nodes)

    def clear(self) -> None:
        """Remove the rows; ids continue."""
        for rows in self.tables.values():
            rows.clear()

    def add_providers(
        self, node: Node, *, parent: int | None = None, root: int | None = None
    ) -> list[tuple[int, Node]]:
        """Add a provider and those below it without usage; return them with their ids."""
        id_ = next(self._ids)
        root = root or id_
        self.tables["resource_providers"].append((id_, provider_uuid(node.name), node.name, 1, parent, root))
        for name, total in node.inventory.items():
            self.tables["inventories"].append((id_, self.classes[name], total, 0, 1, total, 1, 1.0))
        self.tables["resource_provider_traits"] += [(id_, self.traits[trait]) for trait in node.traits]
        self.tables["resource_provider_aggregates"] += [(id_, number + 1) for number in node.aggregates]
        below = [pair for child in node.children for pair in self.add_providers(child, parent=id_, root=root)]
        return [(id_, node), *below]

    def new_consumer(self) -> str:
        """Return an unused uuid."""
        return str(uuid.UUID(int=self.chance.getrandbits(128)))

    def allocate(self, consumer: str, project: int, taken: Iterable[tuple[int, str, int]]) -> None:
        """Add a consumer of a project that holds amounts: (provider, class, amount)."""
        self.tables["consumers"].append((consumer, project, 1, 1))
        self.tables["allocations"] += [(id_, self.classes[name], consumer, amount) for id_, name, amount in taken]

    def _fill(self, nodes: Sequence[tuple[int, Node]]) -> None:
        """Divide a tree's usage among its consumers; every other single-unit device is in use."""
        taken: list[list[tuple[int, str, int]]] = [[] for _ in range(self.consumers)]
        holders = Counter(name for _, node in nodes for name in node.inventory)
        seen: Counter[str] = Counter()
        for id_, node in nodes:
            for name, total in node.inventory.items():
                portions = self.consumers // holders[name] or 1
                first = seen[name] * portions
                seen[name] += 1
                for number, amount in enumerate(_divided(self._amount_used(total, seen[name]), portions)):
                    taken[(first + number) % self.consumers].append((id_, name, amount))
        for each in filter(None, taken):
            self.allocate(self.new_consumer(), 1 + len(self.tables["consumers"]) % self.projects, each)

    def _amount_used(self, total: int, number: int) -> int:
        """Return how much of the n-th inventory of a class is in use."""
        if self.is_uneven:
            return round(self.chance.triangular(0, total, total * self.fill))
        return number % 2 if total == 1 else int(total * self.fill)


def _divided(amount: int, portions: int) -> list[int]:
    """Return an amount divided into nearly equal portions, without those of zero."""
    each, more = divmod(amount, portions)
    return [size for index in range(portions) if (size := each + (index < more))]


def make_owners(connection: Connection, *, aggregates: Iterable[str] = (), names: Sequence[str] = ("blue",)) -> None:
    """Add aggregates by name, the projects of consumers, and the user of all of them."""
    numbered = [{"id": number + 1, "uuid": provider_uuid(name)} for number, name in enumerate(aggregates)]
    connection.execute(insert(placement_aggregates), numbered)
    connection.execute(insert(projects), [{"external_id": name} for name in names])
    connection.execute(insert(users), {"external_id": "somebody"})


def rows_for(connection: Connection, **options: Any) -> Rows:
    """Return rows for a database in which classes and traits exist already; options are those of ``Rows``."""
    classes = dict(connection.execute(select(resource_classes.c.name, resource_classes.c.id)).all())
    known_traits = dict(connection.execute(select(traits.c.name, traits.c.id)).all())
    return Rows(classes, known_traits, **options)


def insert_rows(connection: Connection, rows: Rows) -> None:
    """Insert the rows added since the last call."""
    for name, columns in COLUMNS.items():
        if values := [dict(zip(columns, row, strict=True)) for row in rows.tables[name]]:
            connection.execute(insert(metadata.tables[name]), values)
    rows.clear()


def write_trees(connection: Connection, roots: Iterable[Node], **options: Any) -> Rows:
    """Write trees into a database that has the names that they use; return the rows, so that more can be added."""
    rows = rows_for(connection, **options)
    for number, root in enumerate(roots, 1):
        rows.add_tree(root)
        if number % WRITTEN_AT_ONCE == 0:
            insert_rows(connection, rows)
    insert_rows(connection, rows)
    return rows


def write_cloud(connection: Connection, name: str, **options: Any) -> Rows:
    """Write a cloud by its name, as ``write_trees`` does, into a database that has the standard names only."""
    connection.execute(insert(traits), [{"name": each} for each in CUSTOM_TRAITS])
    make_owners(connection, aggregates=[f"aggregate{number}" for number in range(POOLS)])
    rows = write_trees(connection, cloud(name), **options)
    if connection.dialect.name == "postgresql":
        next_id = text("SELECT setval('resource_providers_id_seq', max(id)) FROM resource_providers")
        connection.execute(next_id)
    return rows
