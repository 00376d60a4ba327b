"""The capacity of providers, kept next to their usage so that trees can be summed without a join."""

import sqlalchemy as sa
from alembic import op

from placement.store import kept_usage

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_COLUMNS = {"root_provider_id": sa.Integer, "capacity": sa.Double}


def upgrade() -> None:
    """Add the columns. The triggers that fill them follow, with a recount (placement/store/lifecycle/schema.py)."""
    # MariaDB does not roll back DDL after a failure.
    present = {column["name"] for column in sa.inspect(op.get_bind()).get_columns("provider_usages")}
    for name, kind in _COLUMNS.items():
        if name not in present:
            op.add_column("provider_usages", sa.Column(name, kind))


def downgrade() -> None:
    """Recreate the table: older SQLite cannot drop columns, and an older release recounts in any case."""
    kept_usage.remove(op.get_bind())
    op.drop_table("provider_usages", if_exists=True)
    op.create_table(
        "provider_usages",
        sa.Column("resource_provider_id", sa.Integer, primary_key=True, nullable=False, autoincrement=False),
        sa.Column("resource_class_id", sa.Integer, primary_key=True, nullable=False, autoincrement=False),
        sa.Column("used", sa.BigInteger, nullable=False),
        if_not_exists=True,
    )
