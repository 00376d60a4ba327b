"""What providers can give, kept beside what they use, so that whole trees are summed up without a join."""

import sqlalchemy as sa
from alembic import op

from placement.store.kept_usage import usage_triggers

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_COLUMNS = {"root_provider_id": sa.Integer, "capacity": sa.Double}


def upgrade() -> None:
    """Make the columns. Triggers that fill them follow, with a fresh count (placement/store/lifecycle/schema.py)."""
    # MariaDB keeps what was made when it fails halfway.
    present = {column["name"] for column in sa.inspect(op.get_bind()).get_columns("provider_usages")}
    for name in [name for name in _COLUMNS if name not in present]:
        op.add_column("provider_usages", sa.Column(name, _COLUMNS[name]))


def downgrade() -> None:
    """Take the columns back; an older release makes its own triggers."""
    usage_triggers.remove(op.get_bind())
    for name in _COLUMNS:
        op.drop_column("provider_usages", name)
