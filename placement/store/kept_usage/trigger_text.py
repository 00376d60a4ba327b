"""The SQL of the triggers that keep ``provider_usages`` exact, for each kind of database.

Whoever writes ``allocations`` - this server, the reference, an operator with a SQL shell - fires them. A row of
``provider_usages`` that falls to 0 stays: removing and making it again under load would only breed deadlocks.
"""

from dataclasses import dataclass

WRITE_GATE_KEY = 0x706C_6163_656D_6E74
"""The advisory lock of PostgreSQL that writers of allocations hold: see ``store/kept_usage/write_gate.py``."""

GATE_SETTING = "placement.write_gate"
"""The transaction's setting that tells the trigger that this server has already passed the gate."""


@dataclass(frozen=True, slots=True)
class Trigger:
    """A trigger: ``CREATE TRIGGER name`` + `fires` + `body`."""

    name: str
    fires: str
    body: str

    @property
    def create(self) -> str:
        """The statement that makes it."""
        return f"CREATE TRIGGER {self.name} {self.fires} {self.body}"

    @property
    def table(self) -> str:
        """The table it is on."""
        return self.fires.partition(" ON ")[2].split()[0]


INSERTED = "provider_usages_inserted"
UPDATED = "provider_usages_updated"
DELETED = "provider_usages_deleted"
TRUNCATED = "provider_usages_truncated"
GATE = "provider_usages_gate"
PROVIDER_DELETED = "provider_usages_provider_deleted"

# PostgreSQL: one call for each statement, not for each row. Rows are applied in ascending order, so that two
# statements never wait for each other crosswise.

POSTGRESQL_KEEP = """
BEGIN
    IF TG_TABLE_NAME = 'resource_providers' THEN
        DELETE FROM provider_usages
        WHERE used = 0 AND resource_provider_id IN (SELECT id FROM old_rows);
    ELSIF TG_OP = 'INSERT' THEN
        INSERT INTO provider_usages AS kept
        SELECT resource_provider_id, resource_class_id, sum(used) FROM new_rows
        GROUP BY 1, 2 ORDER BY 1, 2
        ON CONFLICT (resource_provider_id, resource_class_id) DO UPDATE SET used = kept.used + excluded.used;
    ELSIF TG_OP = 'DELETE' THEN
        INSERT INTO provider_usages AS kept
        SELECT resource_provider_id, resource_class_id, -sum(used) FROM old_rows
        GROUP BY 1, 2 ORDER BY 1, 2
        ON CONFLICT (resource_provider_id, resource_class_id) DO UPDATE SET used = kept.used + excluded.used;
    ELSIF TG_OP = 'UPDATE' THEN
        INSERT INTO provider_usages AS kept
        SELECT resource_provider_id, resource_class_id, sum(used)
        FROM (SELECT resource_provider_id, resource_class_id, used FROM new_rows
              UNION ALL SELECT resource_provider_id, resource_class_id, -used FROM old_rows) AS changes
        GROUP BY 1, 2 HAVING sum(used) <> 0 ORDER BY 1, 2
        ON CONFLICT (resource_provider_id, resource_class_id) DO UPDATE SET used = kept.used + excluded.used;
    ELSE
        DELETE FROM provider_usages;
    END IF;
    RETURN NULL;
END
"""

POSTGRESQL_GATE = f"""
BEGIN
    IF current_setting('{GATE_SETTING}', true) IS DISTINCT FROM 'passed' THEN
        PERFORM pg_advisory_xact_lock({WRITE_GATE_KEY});
    END IF;
    RETURN NULL;
END
"""

POSTGRESQL_FUNCTIONS = {"placement_keep_usage": POSTGRESQL_KEEP, "placement_write_gate": POSTGRESQL_GATE}

_KEEP = "FOR EACH STATEMENT EXECUTE FUNCTION placement_keep_usage()"

POSTGRESQL = (
    Trigger(
        GATE,
        "BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON allocations",
        "FOR EACH STATEMENT EXECUTE FUNCTION placement_write_gate()",
    ),
    Trigger(INSERTED, "AFTER INSERT ON allocations", f"REFERENCING NEW TABLE AS new_rows {_KEEP}"),
    Trigger(UPDATED, "AFTER UPDATE ON allocations", f"REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows {_KEEP}"),
    Trigger(DELETED, "AFTER DELETE ON allocations", f"REFERENCING OLD TABLE AS old_rows {_KEEP}"),
    Trigger(TRUNCATED, "AFTER TRUNCATE ON allocations", _KEEP),
    Trigger(PROVIDER_DELETED, "AFTER DELETE ON resource_providers", f"REFERENCING OLD TABLE AS old_rows {_KEEP}"),
)


def _sqlite_change(row: str, sign: str) -> str:
    here = f"resource_provider_id = {row}.resource_provider_id AND resource_class_id = {row}.resource_class_id"
    # Not INSERT OR IGNORE: inside a trigger the conflict policy of the outer statement (OR REPLACE) would win.
    return (
        f"INSERT INTO provider_usages SELECT {row}.resource_provider_id, {row}.resource_class_id, 0 "  # noqa: S608
        f"WHERE NOT EXISTS (SELECT 1 FROM provider_usages WHERE {here}); "
        f"UPDATE provider_usages SET used = used {sign} {row}.used WHERE {here};"
    )


_FORGET_PROVIDER = "DELETE FROM provider_usages WHERE resource_provider_id = OLD.id AND used = 0"

SQLITE = (
    Trigger(INSERTED, "AFTER INSERT ON allocations", f"BEGIN {_sqlite_change('NEW', '+')} END"),
    Trigger(
        UPDATED,
        "AFTER UPDATE OF resource_provider_id, resource_class_id, used ON allocations",
        f"BEGIN {_sqlite_change('OLD', '-')} {_sqlite_change('NEW', '+')} END",
    ),
    Trigger(DELETED, "AFTER DELETE ON allocations", f"BEGIN {_sqlite_change('OLD', '-')} END"),
    Trigger(PROVIDER_DELETED, "AFTER DELETE ON resource_providers", f"BEGIN {_FORGET_PROVIDER}; END"),
)


def _mariadb_change(row: str, sign: str) -> str:
    return (
        "INSERT INTO provider_usages (resource_provider_id, resource_class_id, used) "  # noqa: S608
        f"VALUES ({row}.resource_provider_id, {row}.resource_class_id, {sign}{row}.used) "
        "ON DUPLICATE KEY UPDATE used = used + VALUES(used)"
    )


MARIADB = (
    Trigger(INSERTED, "AFTER INSERT ON allocations", f"FOR EACH ROW {_mariadb_change('NEW', '')}"),
    Trigger(
        UPDATED,
        "AFTER UPDATE ON allocations",
        f"FOR EACH ROW BEGIN {_mariadb_change('OLD', '-')}; {_mariadb_change('NEW', '')}; END",
    ),
    Trigger(DELETED, "AFTER DELETE ON allocations", f"FOR EACH ROW {_mariadb_change('OLD', '-')}"),
    Trigger(PROVIDER_DELETED, "AFTER DELETE ON resource_providers", f"FOR EACH ROW {_FORGET_PROVIDER}"),
)
"""The last one is made when the usage has been counted: where all are there, the count is exact."""
