"""What drained inventories had reserved before, so that enabling their tree restores it."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "drained_inventories",
        sa.Column("provider_uuid", sa.String(36), primary_key=True, nullable=False),
        sa.Column("resource_class_id", sa.Integer, primary_key=True, nullable=False, autoincrement=False),
        sa.Column("reserved", sa.Integer, nullable=False),
        # MariaDB does not roll back DDL after a failure.
        if_not_exists=True,
    )


def downgrade() -> None:
    """Drop the table."""
    op.drop_table("drained_inventories", if_exists=True)
