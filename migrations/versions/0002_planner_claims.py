"""The planner's answers to claims, so that a repeated claim gets the same answer."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "planner_claims",
        sa.Column("id", sa.Integer, primary_key=True, nullable=False),
        sa.Column("consumer_uuid", sa.String(36), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("generation", sa.Integer, nullable=False),
        sa.Column("answer", sa.Text, nullable=False),
        sa.UniqueConstraint("consumer_uuid", name="uniq_planner_claims0consumer_uuid"),
        # MariaDB does not roll back DDL after a failure.
        if_not_exists=True,
    )


def downgrade() -> None:
    """Drop the table."""
    op.drop_table("planner_claims", if_exists=True)
