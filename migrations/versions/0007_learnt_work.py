"""The mix of work that profiles with ``fragmentation`` learn from requests, kept over restarts for all workers."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table, empty."""
    op.create_table(
        "learnt_work",
        sa.Column("profile", sa.String(255), primary_key=True, nullable=False),
        sa.Column("document", sa.Text().with_variant(mysql.MEDIUMTEXT(), "mysql", "mariadb"), nullable=False),
        # MariaDB does not roll back DDL after a failure.
        if_not_exists=True,
    )


def downgrade() -> None:
    """Drop the table: the release before learns from allocations."""
    op.drop_table("learnt_work", if_exists=True)
