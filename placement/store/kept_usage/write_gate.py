"""The gate before ``allocations`` on PostgreSQL: this server's writers pass it together, a foreign writer alone.

The reference reads the usage, inserts, and only then compares the provider's generation; when that fails it tries
again in the same transaction, counts its own first insert as earlier usage, and takes more than there is (54 of 50
units with eight clients). A trigger therefore makes a foreign writer wait, at its first DELETE or INSERT on
``allocations`` - which the reference sends before it reads the usage - until it is the only writer. What it reads
then stays true until it commits, and it cannot deadlock with another foreign writer either.

This server locks the providers it writes to, so its own writers may pass together. They must do so before they lock
anything else, because the reference locks in this order too: first the gate, then the provider.
"""

from sqlalchemy import Connection, text

from placement.store.connection.prepared import PreparedStatement
from placement.store.kept_usage.postgresql_triggers import GATE_SETTING, WRITE_GATE_KEY

_PASS = PreparedStatement(
    text(f"SELECT set_config('{GATE_SETTING}', 'passed', true), pg_advisory_xact_lock_shared({WRITE_GATE_KEY})")
)


def pass_write_gate(connection: Connection) -> None:
    """Announce that this transaction is going to write allocations; its first statement on PostgreSQL.

    Without it the trigger takes this transaction for a foreign one: slower, and a deadlock may have to be retried,
    but nothing is lost.
    """
    if connection.dialect.name == "postgresql":
        _PASS.tuples(connection)
