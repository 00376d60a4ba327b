"""The oldest transaction that was open when a row of the journal was written, so that readers notice lost commits.

The triggers that fill it follow in the same transaction (placement/store/lifecycle/schema.py).
"""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_COLUMN = "oldest_open"


def upgrade() -> None:
    """Add the column. It is null in older rows, and on databases other than PostgreSQL."""
    # A downgrade leaves it, and MariaDB does not roll back DDL after a failure.
    columns = sa.inspect(op.get_bind()).get_columns("placement_journal")
    if not any(column["name"] == _COLUMN for column in columns):
        op.add_column("placement_journal", sa.Column(_COLUMN, sa.BigInteger))


def downgrade() -> None:
    """Leave the column: the triggers that fill it go on writing the journal, and the release before ignores it."""
