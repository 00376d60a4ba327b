"""Trees of any shape, loaded into a database of this server. Clouds for both servers are written by rows.py."""

from collections.abc import Iterable, Sequence

from sqlalchemy import Connection, insert, select

from placement.store.tables import metadata, placement_aggregates, projects, resource_classes, traits, users
from tests.bench.clouds import Node
from tests.bench.rows import COLUMNS, CONSUMERS_PER_HOST, Rows, provider_uuid


def make_owners(connection: Connection, *, aggregates: Iterable[str] = (), names: Sequence[str] = ("blue",)) -> None:
    """Add aggregates by name, the projects of consumers, and the user of all of them."""
    numbered = [{"id": number + 1, "uuid": provider_uuid(name)} for number, name in enumerate(aggregates)]
    connection.execute(insert(placement_aggregates), numbered)
    connection.execute(insert(projects), [{"external_id": name} for name in names])
    connection.execute(insert(users), {"external_id": "somebody"})


def rows_for(connection: Connection, *, consumers: int = CONSUMERS_PER_HOST) -> Rows:
    """Return rows in which nothing is in use unless ``fill`` is set; classes and traits exist already."""
    classes = dict(connection.execute(select(resource_classes.c.name, resource_classes.c.id)).all())
    known = dict(connection.execute(select(traits.c.name, traits.c.id)).all())
    return Rows(classes, known, fill=0.0, consumers=consumers)


def insert_rows(connection: Connection, rows: Rows) -> None:
    """Insert the rows added since the last call."""
    for name, columns in COLUMNS.items():
        if values := [dict(zip(columns, row, strict=True)) for row in rows.tables[name]]:
            connection.execute(insert(metadata.tables[name]), values)
    rows.clear()


def load_idle(connection: Connection, roots: Iterable[Node]) -> None:
    """Load trees without any usage into an empty database."""
    rows = rows_for(connection)
    for root in roots:
        rows.add_tree(root)
    insert_rows(connection, rows)
