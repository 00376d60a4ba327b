"""The reference's tables where they are absent, and the kept usage beside them."""

import sqlalchemy as sa
from alembic import op

from placement.store.kept_usage import usage_triggers
from placement.store.tables import REFERENCE_TABLES, metadata

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables. The triggers follow in the same transaction (placement/store/lifecycle/schema.py)."""
    # The reference's schema stands still at one revision, so that this history need not spell it out.
    metadata.create_all(op.get_bind(), tables=REFERENCE_TABLES)
    op.create_table(
        "provider_usages",
        sa.Column("resource_provider_id", sa.Integer, primary_key=True, nullable=False, autoincrement=False),
        sa.Column("resource_class_id", sa.Integer, primary_key=True, nullable=False, autoincrement=False),
        sa.Column("used", sa.BigInteger, nullable=False),
        # MariaDB keeps what was made when it fails halfway.
        if_not_exists=True,
    )


def downgrade() -> None:
    """Take back what is ours; the reference's tables stay."""
    usage_triggers.remove(op.get_bind())
    op.drop_table("provider_usages", if_exists=True)
