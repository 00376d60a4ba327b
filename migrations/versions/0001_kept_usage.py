"""The reference's tables, where absent, and the table of kept usage."""

import sqlalchemy as sa
from alembic import op

from placement.store import kept_usage
from placement.store.tables import REFERENCE_TABLES, metadata

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the tables. The triggers follow in the same transaction (placement/store/lifecycle/schema.py)."""
    # The reference's schema is frozen at one revision, so this history need not spell it out.
    metadata.create_all(op.get_bind(), tables=REFERENCE_TABLES)
    op.create_table(
        "provider_usages",
        sa.Column("resource_provider_id", sa.Integer, primary_key=True, nullable=False, autoincrement=False),
        sa.Column("resource_class_id", sa.Integer, primary_key=True, nullable=False, autoincrement=False),
        sa.Column("used", sa.BigInteger, nullable=False),
        # MariaDB does not roll back DDL after a failure.
        if_not_exists=True,
    )


def downgrade() -> None:
    """Drop our own table and triggers; the reference's tables stay."""
    kept_usage.remove(op.get_bind())
    op.drop_table("provider_usages", if_exists=True)
