"""Rows written in plain SQL, as the reference or an operator writes them, and the kept usage."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from sqlalchemy import Connection, text

from placement.domain.identity import CURRENT_REQUEST, Identity, ServedRequest
from placement.store.connection.database import Database
from placement.store.locks import pass_write_gate

VCPU, MEMORY_MB, DISK_GB = 0, 1, 2
A_REQUEST = ServedRequest("req-1", identity=Identity("u", "p"), route="PUT /allocations/<consumer_uuid>")

Spot = tuple[int, int]


def opened(database: Database) -> Connection:
    """Return a connection in an open transaction that may write allocations."""
    connection = database.writer.connect()
    connection.begin()
    pass_write_gate(connection)
    return connection


def add_hosts(database: Database, count: int, *, vcpus: int = 10) -> None:
    """Add root providers of VCPUs."""
    with database.writer.begin() as connection:
        for provider in add_providers(connection, count):
            run(connection, stocking((provider, VCPU), total=vcpus))


def add_providers(connection: Connection, count: int) -> list[int]:
    """Add root providers and return their ids, from 1."""
    ids = list(range(1, count + 1))
    connection.execute(
        text("INSERT INTO resource_providers (id, uuid, name, generation) VALUES (:id, :uuid, :uuid, 0)"),
        [{"id": id_, "uuid": f"provider-{id_}"} for id_ in ids],
    )
    connection.execute(text("UPDATE resource_providers SET root_provider_id = id"))
    return ids


def making(id_: int, *, root: int, parent: int | None = None) -> str:
    """Return the statement that adds a provider to a tree."""
    return (
        "INSERT INTO resource_providers (id, uuid, name, generation, root_provider_id, parent_provider_id) "
        f"VALUES ({id_}, 'provider-{id_}', 'provider-{id_}', 0, {root}, {parent or 'NULL'})"
    )


def delete_provider(connection: Connection, id_: int) -> None:
    """Delete a root provider as the reference does: MariaDB refuses to delete a row that refers to itself."""
    run(
        connection,
        f"UPDATE resource_providers SET root_provider_id = NULL WHERE id = {id_}",
        f"DELETE FROM resource_providers WHERE id = {id_}",
    )


def allocate(connection: Connection, consumer: str, used: Mapping[Spot, int]) -> None:
    """Insert allocations, one statement for each, as the reference does."""
    for (provider, class_), amount in used.items():
        connection.execute(
            text(
                "INSERT INTO allocations (resource_provider_id, resource_class_id, consumer_id, used) "
                "VALUES (:provider, :class_, :consumer, :used)"
            ),
            {"provider": provider, "class_": class_, "consumer": consumer, "used": amount},
        )


def stocking(spot: Spot, *, total: int, ratio: float = 1.0) -> str:
    """Return the statement that gives a provider an inventory, unless it has one already."""
    provider, class_ = spot
    return (
        "INSERT INTO inventories (resource_provider_id, resource_class_id, total, reserved, min_unit, max_unit, "
        f"step_size, allocation_ratio) SELECT {provider}, {class_}, {total}, 0, 1, {total}, 1, {ratio} "
        "WHERE NOT EXISTS (SELECT 1 FROM inventories "
        f"WHERE resource_provider_id = {provider} AND resource_class_id = {class_})"
    )


def run(connection: Connection, *statements: str) -> None:
    """Run statements."""
    for statement in statements:
        connection.execute(text(statement))


def kept(connection: Connection) -> dict[Spot, int]:
    """Return the kept usage, without zeros."""
    return _usage(connection.execute(text("SELECT resource_provider_id, resource_class_id, used FROM provider_usages")))


def summed(connection: Connection) -> dict[Spot, int]:
    """Return the usage as the sum of allocations, without zeros."""
    rows = connection.execute(text("SELECT resource_provider_id, resource_class_id, used FROM allocations"))
    total: dict[Spot, int] = {}
    for provider, class_, used in rows:
        total[provider, class_] = total.get((provider, class_), 0) + used
    return {spot: used for spot, used in total.items() if used}


def kept_stock(connection: Connection) -> dict[Spot, tuple[int, int]]:
    """Return what is kept for each inventory: the root of its provider, and its capacity."""
    query = "SELECT resource_provider_id, resource_class_id, root_provider_id, capacity FROM provider_usages"
    return _stock(connection.execute(text(f"{query} WHERE capacity IS NOT NULL")))


def joined_stock(connection: Connection) -> dict[Spot, tuple[int, int]]:
    """Return the same from the inventories themselves."""
    query = (
        "SELECT resource_provider_id, resource_class_id, root_provider_id, (total - reserved) * allocation_ratio "
        "FROM inventories JOIN resource_providers ON resource_providers.id = resource_provider_id"
    )
    return _stock(connection.execute(text(query)))


def _stock(rows: Iterable[tuple[int, int, int, float]]) -> dict[Spot, tuple[int, int]]:
    return {(provider, class_): (root, int(capacity)) for provider, class_, root, capacity in rows}


def _usage(rows: Iterable[tuple[int, int, int]]) -> dict[Spot, int]:
    return {(provider, class_): used for provider, class_, used in rows if used}


@contextmanager
def by_request(request: ServedRequest = A_REQUEST) -> Iterator[None]:
    """Attribute everything written meanwhile to a request of this server in the journal."""
    token = CURRENT_REQUEST.set(request)
    try:
        yield
    finally:
        CURRENT_REQUEST.reset(token)
