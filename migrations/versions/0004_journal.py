"""The journal of changes. Its triggers follow in the same transaction (placement/store/lifecycle/schema.py)."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

from placement.store.journal import triggers

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_INDEXES = {
    "placement_journal_commit_mark_idx": ["commit_mark"],
    "placement_journal_provider_idx": ["provider_uuid", "id"],
    "placement_journal_consumer_idx": ["consumer_uuid", "id"],
    "placement_journal_project_idx": ["project_id", "id"],
}


def upgrade() -> None:
    """Create the table."""
    # MariaDB does not roll back DDL after a failure, so the next attempt continues from there.
    if not sa.inspect(op.get_bind()).has_table("placement_journal"):
        _create_table()
    for name, columns in _INDEXES.items():
        op.create_index(name, "placement_journal", columns, if_not_exists=True)
    # Rows arrive nearly in time order, so a summary of their pages suffices.
    op.create_index(
        "placement_journal_time_idx", "placement_journal", ["time"], if_not_exists=True, postgresql_using="brin"
    )


def _create_table() -> None:
    op.create_table(
        "placement_journal",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer, "sqlite"),
            primary_key=True,
            nullable=False,
            autoincrement=True,
        ),
        sa.Column("commit_mark", sa.BigInteger),
        sa.Column("time", sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb"), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("action", sa.String(8), nullable=False),
        sa.Column("object_id", sa.BigInteger),
        sa.Column("resource_provider_id", sa.Integer),
        sa.Column("provider_uuid", sa.String(36)),
        sa.Column("root_provider_id", sa.Integer),
        sa.Column("consumer_uuid", sa.String(36)),
        sa.Column("project_id", sa.Integer),
        sa.Column("user_id", sa.Integer),
        sa.Column("consumer_type_id", sa.Integer),
        sa.Column("resource_class_id", sa.Integer),
        sa.Column("old_amount", sa.BigInteger),
        sa.Column("new_amount", sa.BigInteger),
        sa.Column("generation", sa.Integer),
        sa.Column("old_row", sa.Text),
        sa.Column("new_row", sa.Text),
        sa.Column("request_id", sa.String(64)),
        sa.Column("by_user", sa.String(255)),
        sa.Column("by_project", sa.String(255)),
        sa.Column("route", sa.String(255)),
        sqlite_autoincrement=True,
    )


def downgrade() -> None:
    """Drop the table and its triggers."""
    triggers.remove(op.get_bind())
    op.drop_table("placement_journal", if_exists=True)
