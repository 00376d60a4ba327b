"""The gate to ``allocations`` on PostgreSQL: this server's writers pass it side by side, foreign writers alone.

The reference reads the usage, inserts, and only then compares the provider's generation; if that fails it retries
within the same transaction, sees its own first insert as earlier usage, and allocates more than there is (54 of 50
units with eight clients). A trigger therefore makes a foreign writer wait, at its first DELETE or INSERT on
``allocations`` (which the reference sends before it reads the usage), until it is the only writer. What it reads from
then on stays true until it commits, and foreign writers cannot deadlock with each other either.

This server locks the providers it writes to, so its own writers may pass together. They must do so before they take any
other lock, because the reference locks in this order as well: first the gate, then the provider.
"""

from sqlalchemy import Connection, text

from placement.store.connection.prepared import PreparedStatement
from placement.store.kept_usage.postgresql_triggers import GATE_SETTING, WRITE_GATE_KEY

_PASS = PreparedStatement(
    text(f"SELECT set_config('{GATE_SETTING}', 'passed', true), pg_advisory_xact_lock_shared({WRITE_GATE_KEY})")
)


def pass_write_gate(connection: Connection) -> None:
    """Announce that this transaction will write allocations; on PostgreSQL this must be its first statement.

    Without it the trigger would treat the transaction as foreign: slower, and perhaps a deadlock to retry, but still
    correct.
    """
    if connection.dialect.name == "postgresql":
        _PASS.tuples(connection)
