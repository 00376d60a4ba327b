"""The tables: those of the reference's final schema, name by name, and our own beside them.

Monitoring tools and the reference server read and write the first group, so nothing is added to it or left out. Traps
inherited from the reference: ``allocations.consumer_id`` is the consumer's *uuid*; most links between tables are plain
integers without a foreign key; every table has ``created_at`` and ``updated_at`` in naive UTC.
"""

from datetime import UTC, datetime

from sqlalchemy import (
    BigInteger,
    Column,
    DateTime,
    Double,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    Unicode,
    UniqueConstraint,
)
from sqlalchemy.dialects import mysql
from sqlalchemy.schema import SchemaItem

metadata = MetaData()


_NAME = Unicode(255)


def utc_now() -> datetime:
    """Return the current time as the tables store it: naive UTC. MariaDB truncates it to whole seconds."""
    return datetime.now(UTC).replace(tzinfo=None)


def _reference_table(name: str, *columns: SchemaItem) -> Table:
    moments = Column("created_at", DateTime, default=utc_now), Column("updated_at", DateTime, onupdate=utc_now)
    return Table(name, metadata, *moments, *columns)


def _table_of_names(name: str, *, column: str = "name", type_: String = _NAME) -> Table:
    names = Column(column, type_, nullable=False), UniqueConstraint(column, name=f"uniq_{name}0{column}")
    return _reference_table(name, Column("id", Integer, primary_key=True), *names)


resource_classes = _table_of_names("resource_classes", type_=String(255))

resource_providers = _reference_table(
    "resource_providers",
    Column("id", Integer, primary_key=True),
    Column("uuid", String(36), nullable=False),
    Column("name", Unicode(200)),
    Column("generation", Integer, default=0),
    Column("root_provider_id", Integer, ForeignKey("resource_providers.id")),
    Column("parent_provider_id", Integer, ForeignKey("resource_providers.id")),
    UniqueConstraint("uuid", name="uniq_resource_providers0uuid"),
    UniqueConstraint("name", name="uniq_resource_providers0name"),
    Index("resource_providers_root_provider_id_idx", "root_provider_id"),
    Index("resource_providers_parent_provider_id_idx", "parent_provider_id"),
)

inventories = _reference_table(
    "inventories",
    Column("id", Integer, primary_key=True),
    Column("resource_provider_id", Integer, nullable=False),
    Column("resource_class_id", Integer, nullable=False),
    Column("total", Integer, nullable=False),
    Column("reserved", Integer, nullable=False),
    Column("min_unit", Integer, nullable=False),
    Column("max_unit", Integer, nullable=False),
    Column("step_size", Integer, nullable=False),
    Column("allocation_ratio", Float, nullable=False),
    UniqueConstraint(
        "resource_provider_id", "resource_class_id", name="uniq_inventories0resource_provider_resource_class"
    ),
    Index("inventories_resource_class_id_idx", "resource_class_id"),
)

allocations = _reference_table(
    "allocations",
    Column("id", Integer, primary_key=True),
    Column("resource_provider_id", Integer, nullable=False),
    Column("consumer_id", String(36), nullable=False),
    Column("resource_class_id", Integer, nullable=False),
    Column("used", Integer, nullable=False),
    Index("allocations_resource_provider_class_used_idx", "resource_provider_id", "resource_class_id", "used"),
    Index("allocations_resource_class_id_idx", "resource_class_id"),
    Index("allocations_consumer_id_idx", "consumer_id"),
)

resource_provider_aggregates = _reference_table(
    "resource_provider_aggregates",
    Column("resource_provider_id", Integer, primary_key=True, autoincrement=False),
    Column("aggregate_id", Integer, primary_key=True, autoincrement=False),
    Index("resource_provider_aggregates_aggregate_id_idx", "aggregate_id"),
)

placement_aggregates = _reference_table(
    "placement_aggregates",
    Column("id", Integer, primary_key=True),
    Column("uuid", String(36)),
    UniqueConstraint("uuid", name="uniq_placement_aggregates0uuid"),
)

traits = _table_of_names("traits")

resource_provider_traits = _reference_table(
    "resource_provider_traits",
    Column("trait_id", Integer, ForeignKey("traits.id"), primary_key=True, autoincrement=False),
    Column(
        "resource_provider_id",
        Integer,
        ForeignKey("resource_providers.id"),
        primary_key=True,
        nullable=False,
        autoincrement=False,
    ),
    Index("resource_provider_traits_resource_provider_trait_idx", "resource_provider_id", "trait_id"),
)

projects = _table_of_names("projects", column="external_id", type_=String(255))

users = _table_of_names("users", column="external_id", type_=String(255))

consumer_types = _table_of_names("consumer_types")

consumers = _reference_table(
    "consumers",
    Column("id", Integer, primary_key=True),
    Column("uuid", String(36), nullable=False),
    Column("project_id", Integer, nullable=False),
    Column("user_id", Integer, nullable=False),
    Column("generation", Integer, nullable=False, server_default="0", default=0),
    Column("consumer_type_id", Integer, ForeignKey("consumer_types.id", name="consumers_consumer_type_id_fkey")),
    UniqueConstraint("uuid", name="uniq_consumers0uuid"),
    Index("consumers_project_id_uuid_idx", "project_id", "uuid"),
    Index("consumers_project_id_user_id_uuid_idx", "project_id", "user_id", "uuid"),
    Index("consumers_consumer_type_id_idx", "consumer_type_id"),
)

REFERENCE_TABLES = tuple(metadata.tables.values())

provider_usages = Table(
    "provider_usages",
    metadata,
    Column("resource_provider_id", Integer, primary_key=True, autoincrement=False),
    Column("resource_class_id", Integer, primary_key=True, autoincrement=False),
    Column("used", BigInteger, nullable=False),
    Column("root_provider_id", Integer),
    Column("capacity", Double),
)
"""Each provider's usage of a class, kept exact by triggers (store/kept_usage), and its capacity.

``capacity`` is a whole number, null without an inventory; ``root_provider_id`` is only meaningful where it is not null.
"""

planner_claims = Table(
    "planner_claims",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("consumer_uuid", String(36), nullable=False),
    Column("digest", String(64), nullable=False),
    Column("generation", Integer, nullable=False),
    Column("answer", Text, nullable=False),
    UniqueConstraint("consumer_uuid", name="uniq_planner_claims0consumer_uuid"),
)
"""The answer to a planner claim, in case it is sent again (store/planner_rows.py)."""

drained_inventories = Table(
    "drained_inventories",
    metadata,
    Column("provider_uuid", String(36), primary_key=True),
    Column("resource_class_id", Integer, primary_key=True, autoincrement=False),
    Column("reserved", Integer, nullable=False),
)
"""What inventories had reserved before their tree was drained (services/whole_trees.py)."""

placement_journal = Table(
    "placement_journal",
    metadata,
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("commit_mark", BigInteger),
    Column("time", DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb"), nullable=False),
    Column("kind", String(16), nullable=False),
    Column("action", String(8), nullable=False),
    Column("object_id", BigInteger),
    Column("resource_provider_id", Integer),
    Column("provider_uuid", String(36)),
    Column("root_provider_id", Integer),
    Column("consumer_uuid", String(36)),
    Column("project_id", Integer),
    Column("user_id", Integer),
    Column("consumer_type_id", Integer),
    Column("resource_class_id", Integer),
    Column("old_amount", BigInteger),
    Column("new_amount", BigInteger),
    Column("generation", Integer),
    Column("old_row", Text),
    Column("new_row", Text),
    Column("request_id", String(64)),
    Column("by_user", String(255)),
    Column("by_project", String(255)),
    Column("route", String(255)),
    Column("oldest_open", BigInteger),
    Index("placement_journal_commit_mark_idx", "commit_mark"),
    Index("placement_journal_time_idx", "time", postgresql_using="brin"),
    Index("placement_journal_provider_idx", "provider_uuid", "id"),
    Index("placement_journal_consumer_idx", "consumer_uuid", "id"),
    Index("placement_journal_project_idx", "project_id", "id"),
    sqlite_autoincrement=True,
)
"""All changes, in the order of their ids: a public interface, described in docs/reference/journal.md."""

placement_former_names = Table(
    "placement_former_names",
    metadata,
    Column("journal_id", BigInteger, primary_key=True, autoincrement=False),
    Column("kind", String(16), nullable=False),
    Column("object_id", Integer, nullable=False),
    Column("name", Unicode(255), nullable=False),
)
"""Names that resource classes and traits have lost, each with the row of the journal that tells of it: rows up to that
one mean this name by the id (store/journal/reading.py).
"""

learnt_work = Table(
    "learnt_work",
    metadata,
    Column("profile", String(255), primary_key=True),
    Column("document", Text().with_variant(mysql.MEDIUMTEXT(), "mysql", "mariadb"), nullable=False),
)
"""The mix of work that a profile has learnt from requests (store/planner_rows.py)."""

VERSION_TABLE = "placement_server_version"
"""Where Alembic stores the revision of our tables; the reference's own is in ``alembic_version``."""
