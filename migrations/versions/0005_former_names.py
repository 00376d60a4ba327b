"""Names that resource classes and traits have lost, so that the journal goes on calling them so.

The triggers that fill it follow in the same transaction (placement/store/lifecycle/schema.py).
"""

import sqlalchemy as sa
from alembic import op

from placement.store.journal import triggers

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table. Names that were lost before are not known."""
    op.create_table(
        "placement_former_names",
        sa.Column("journal_id", sa.BigInteger, primary_key=True, nullable=False, autoincrement=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("object_id", sa.Integer, nullable=False),
        sa.Column("name", sa.Unicode(255), nullable=False),
        # MariaDB does not roll back DDL after a failure.
        if_not_exists=True,
    )


def downgrade() -> None:
    """Drop the table and the triggers on the two tables of names; the journal goes on without them."""
    triggers.remove_those_of_names(op.get_bind())
    op.drop_table("placement_former_names", if_exists=True)
