"""${message}."""

from alembic import op

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = ${repr(branch_labels)}
depends_on = ${repr(depends_on)}


def upgrade() -> None:
    """Describe what changes."""
    ${upgrades if upgrades else "pass"}


def downgrade() -> None:
    """Describe what is taken back."""
    ${downgrades if downgrades else "pass"}
