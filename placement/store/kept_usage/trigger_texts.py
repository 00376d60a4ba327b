"""The texts of the triggers that keep usage.

Those of SQLite and MariaDB fire for each row. Those of PostgreSQL on ``allocations`` fire once for each statement and
lock rows in ascending order, so that two statements cannot deadlock. Those on ``inventories`` fire for each row, which
is cheaper for the few that a provider has. To rule out deadlocks as well, PostgreSQL's triggers lock a provider's row
before its kept usage for writers that would lock it last: the reference changes the generation at the end.
"""

from placement.store.stock import capacity_text
from placement.store.trigger_set import Trigger, TriggerSet


def _here(row: str) -> str:
    return (
        f"provider_usages.resource_provider_id = {row}.resource_provider_id "
        f"AND provider_usages.resource_class_id = {row}.resource_class_id"
    )


def _begin(row: str) -> str:
    # Not INSERT OR IGNORE: inside a trigger the outer statement's conflict policy (OR REPLACE) would override it.
    return (
        "INSERT INTO provider_usages (resource_provider_id, resource_class_id, used) "  # noqa: S608
        f"SELECT {row}.resource_provider_id, {row}.resource_class_id, 0 "
        f"WHERE NOT EXISTS (SELECT 1 FROM provider_usages WHERE {_here(row)});"
    )


def _use(row: str, sign: str) -> str:
    return f"{_begin(row)} UPDATE provider_usages SET used = used {sign} {row}.used WHERE {_here(row)};"  # noqa: S608


_UNSTOCK = f"UPDATE provider_usages SET capacity = NULL WHERE {_here('OLD')};"  # noqa: S608
_OWNER = "FROM resource_providers WHERE id = NEW.resource_provider_id"
_STOCK = (
    f"{_begin('NEW')} UPDATE provider_usages SET root_provider_id = (SELECT root_provider_id {_OWNER}), "  # noqa: S608
    f"capacity = {capacity_text('sqlite', 'NEW')} WHERE {_here('NEW')} AND EXISTS (SELECT 1 {_OWNER});"
)
_MOVE = "UPDATE provider_usages SET root_provider_id = NEW.root_provider_id WHERE resource_provider_id = NEW.id;"
_FORGET = "DELETE FROM provider_usages WHERE resource_provider_id = OLD.id AND used = 0;"

SQLITE = TriggerSet(
    (
        Trigger("provider_usages_inserted", "AFTER INSERT ON allocations", f"BEGIN {_use('NEW', '+')} END"),
        Trigger(
            "provider_usages_updated",
            "AFTER UPDATE OF resource_provider_id, resource_class_id, used ON allocations",
            f"BEGIN {_use('OLD', '-')} {_use('NEW', '+')} END",
        ),
        Trigger("provider_usages_deleted", "AFTER DELETE ON allocations", f"BEGIN {_use('OLD', '-')} END"),
        Trigger("provider_usages_stocked", "AFTER INSERT ON inventories", f"BEGIN {_STOCK} END"),
        Trigger("provider_usages_restocked", "AFTER UPDATE ON inventories", f"BEGIN {_UNSTOCK} {_STOCK} END"),
        Trigger("provider_usages_unstocked", "AFTER DELETE ON inventories", f"BEGIN {_UNSTOCK} END"),
        Trigger(
            "provider_usages_provider_moved",
            "AFTER UPDATE OF root_provider_id ON resource_providers",
            f"BEGIN {_MOVE} END",
        ),
        Trigger("provider_usages_provider_deleted", "AFTER DELETE ON resource_providers", f"BEGIN {_FORGET} END"),
    )
)


def _use_on_mariadb(row: str, sign: str) -> str:
    return (
        "INSERT INTO provider_usages (resource_provider_id, resource_class_id, used) "  # noqa: S608
        f"VALUES ({row}.resource_provider_id, {row}.resource_class_id, {sign}{row}.used) "
        "ON DUPLICATE KEY UPDATE used = used + VALUES(used)"
    )


_UNSTOCK_ON_MARIADB = (
    "UPDATE provider_usages SET capacity = NULL "
    "WHERE resource_provider_id = OLD.resource_provider_id AND resource_class_id = OLD.resource_class_id"
)
_STOCK_ON_MARIADB = (
    "INSERT INTO provider_usages (resource_provider_id, resource_class_id, used, root_provider_id, capacity) "  # noqa: S608
    f"SELECT NEW.resource_provider_id, NEW.resource_class_id, 0, root_provider_id, {capacity_text('mysql', 'NEW')} "
    "FROM resource_providers WHERE id = NEW.resource_provider_id FOR UPDATE "
    "ON DUPLICATE KEY UPDATE root_provider_id = VALUES(root_provider_id), capacity = VALUES(capacity)"
)
_MOVE_ON_MARIADB = (
    "IF NOT NEW.root_provider_id <=> OLD.root_provider_id THEN "
    "UPDATE provider_usages SET root_provider_id = NEW.root_provider_id WHERE resource_provider_id = NEW.id; END IF"
)
_FORGET_ON_MARIADB = "DELETE FROM provider_usages WHERE resource_provider_id = OLD.id AND used = 0"

MARIADB = TriggerSet(
    (
        Trigger(
            "provider_usages_inserted", "AFTER INSERT ON allocations", f"FOR EACH ROW {_use_on_mariadb('NEW', '')}"
        ),
        Trigger(
            "provider_usages_updated",
            "AFTER UPDATE ON allocations",
            f"FOR EACH ROW BEGIN {_use_on_mariadb('OLD', '-')}; {_use_on_mariadb('NEW', '')}; END",
        ),
        Trigger(
            "provider_usages_deleted", "AFTER DELETE ON allocations", f"FOR EACH ROW {_use_on_mariadb('OLD', '-')}"
        ),
        Trigger("provider_usages_stocked", "AFTER INSERT ON inventories", f"FOR EACH ROW {_STOCK_ON_MARIADB}"),
        Trigger(
            "provider_usages_restocked",
            "AFTER UPDATE ON inventories",
            f"FOR EACH ROW BEGIN {_UNSTOCK_ON_MARIADB}; {_STOCK_ON_MARIADB}; END",
        ),
        Trigger("provider_usages_unstocked", "AFTER DELETE ON inventories", f"FOR EACH ROW {_UNSTOCK_ON_MARIADB}"),
        Trigger(
            "provider_usages_provider_moved", "AFTER UPDATE ON resource_providers", f"FOR EACH ROW {_MOVE_ON_MARIADB}"
        ),
        Trigger(
            "provider_usages_provider_deleted",
            "AFTER DELETE ON resource_providers",
            f"FOR EACH ROW {_FORGET_ON_MARIADB}",
        ),
    )
)
"""The last one is created once everything has been counted: if all of them exist, the count is exact."""


WRITE_GATE_KEY = 0x706C_6163_656D_6E74
"""The advisory lock held by writers of allocations: see ``store/locks.py``."""

GATE_SETTING = "placement.write_gate"
"""The transaction-local setting by which this server tells the triggers that it has passed the gate."""


def _lock_providers(rows: str) -> str:
    # As an array: PostgreSQL estimates so many rows for the set itself that it would scan all providers.
    return (
        f"PERFORM 1 FROM resource_providers WHERE id = ANY (ARRAY(SELECT resource_provider_id FROM {rows})) "  # noqa: S608
        "ORDER BY id FOR NO KEY UPDATE;"
    )


_ADD = "ON CONFLICT (resource_provider_id, resource_class_id) DO UPDATE SET used = kept.used + excluded.used"

KEEP_USAGE = f"""
DECLARE
    is_foreign boolean := current_setting('{GATE_SETTING}', true) IS DISTINCT FROM 'passed';
BEGIN
    IF TG_OP = 'INSERT' THEN
        IF is_foreign THEN {_lock_providers("new_rows")} END IF;
        INSERT INTO provider_usages AS kept (resource_provider_id, resource_class_id, used)
        SELECT resource_provider_id, resource_class_id, sum(used) FROM new_rows
        GROUP BY 1, 2 ORDER BY 1, 2 {_ADD};
    ELSIF TG_OP = 'DELETE' THEN
        IF is_foreign THEN {_lock_providers("old_rows")} END IF;
        INSERT INTO provider_usages AS kept (resource_provider_id, resource_class_id, used)
        SELECT resource_provider_id, resource_class_id, -sum(used) FROM old_rows
        GROUP BY 1, 2 ORDER BY 1, 2 {_ADD};
    ELSIF TG_OP = 'UPDATE' THEN
        IF is_foreign THEN
            {_lock_providers("(TABLE old_rows UNION ALL TABLE new_rows) AS changed")}
        END IF;
        INSERT INTO provider_usages AS kept (resource_provider_id, resource_class_id, used)
        SELECT resource_provider_id, resource_class_id, sum(used)
        FROM (SELECT resource_provider_id, resource_class_id, used FROM new_rows
              UNION ALL SELECT resource_provider_id, resource_class_id, -used FROM old_rows) AS changes
        GROUP BY 1, 2 HAVING sum(used) <> 0 ORDER BY 1, 2 {_ADD};
    ELSE
        UPDATE provider_usages SET used = 0 WHERE used <> 0;
    END IF;
    RETURN NULL;
END
"""  # noqa: S608

KEEP_STOCK = f"""
BEGIN
    INSERT INTO provider_usages (resource_provider_id, resource_class_id, used, root_provider_id, capacity)
    SELECT NEW.resource_provider_id, NEW.resource_class_id, 0, root_provider_id, {capacity_text("postgresql", "NEW")}
    FROM resource_providers WHERE id = NEW.resource_provider_id FOR NO KEY UPDATE
    ON CONFLICT (resource_provider_id, resource_class_id)
    DO UPDATE SET root_provider_id = excluded.root_provider_id, capacity = excluded.capacity;
    RETURN NULL;
END
"""  # noqa: S608

UNSTOCK = """
BEGIN
    PERFORM 1 FROM resource_providers WHERE id = OLD.resource_provider_id FOR NO KEY UPDATE;
    UPDATE provider_usages SET capacity = NULL
    WHERE resource_provider_id = OLD.resource_provider_id AND resource_class_id = OLD.resource_class_id;
    RETURN NULL;
END
"""

UNSTOCK_ALL = """
BEGIN
    UPDATE provider_usages SET capacity = NULL WHERE capacity IS NOT NULL;
    RETURN NULL;
END
"""

MOVE_PROVIDER = """
BEGIN
    UPDATE provider_usages SET root_provider_id = NEW.root_provider_id WHERE resource_provider_id = NEW.id;
    RETURN NULL;
END
"""

FORGET_PROVIDERS = """
BEGIN
    DELETE FROM provider_usages WHERE used = 0 AND resource_provider_id = ANY (ARRAY(SELECT id FROM old_rows));
    RETURN NULL;
END
"""

PASS_GATE = f"""
BEGIN
    IF current_setting('{GATE_SETTING}', true) IS DISTINCT FROM 'passed' THEN
        PERFORM pg_advisory_xact_lock({WRITE_GATE_KEY});
    END IF;
    RETURN NULL;
END
"""

FUNCTIONS = {
    "placement_keep_usage": KEEP_USAGE,
    "placement_stock": KEEP_STOCK,
    "placement_unstock": UNSTOCK,
    "placement_unstock_all": UNSTOCK_ALL,
    "placement_move_provider": MOVE_PROVIDER,
    "placement_forget_providers": FORGET_PROVIDERS,
    "placement_write_gate": PASS_GATE,
}

_OLD, _NEW = "REFERENCING OLD TABLE AS old_rows", "REFERENCING NEW TABLE AS new_rows"
_BOTH = "REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows"
_KEEP = "FOR EACH STATEMENT EXECUTE FUNCTION placement_keep_usage()"
_CALL_UNSTOCK = "EXECUTE FUNCTION placement_unstock()"
_ELSEWHERE = "(OLD.resource_provider_id, OLD.resource_class_id) <> (NEW.resource_provider_id, NEW.resource_class_id)"
_ANOTHER_ROOT = "OLD.root_provider_id IS DISTINCT FROM NEW.root_provider_id"

TRIGGERS = (
    Trigger(
        "provider_usages_gate",
        "BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON allocations",
        "FOR EACH STATEMENT EXECUTE FUNCTION placement_write_gate()",
    ),
    Trigger("provider_usages_inserted", "AFTER INSERT ON allocations", f"{_NEW} {_KEEP}"),
    Trigger("provider_usages_updated", "AFTER UPDATE ON allocations", f"{_BOTH} {_KEEP}"),
    Trigger("provider_usages_deleted", "AFTER DELETE ON allocations", f"{_OLD} {_KEEP}"),
    Trigger("provider_usages_truncated", "AFTER TRUNCATE ON allocations", _KEEP),
    Trigger(
        "provider_usages_stocked",
        "AFTER INSERT OR UPDATE ON inventories",
        "FOR EACH ROW EXECUTE FUNCTION placement_stock()",
    ),
    Trigger(
        "provider_usages_restocked", "AFTER UPDATE ON inventories", f"FOR EACH ROW WHEN ({_ELSEWHERE}) {_CALL_UNSTOCK}"
    ),
    Trigger("provider_usages_unstocked", "AFTER DELETE ON inventories", f"FOR EACH ROW {_CALL_UNSTOCK}"),
    Trigger(
        "provider_usages_emptied",
        "AFTER TRUNCATE ON inventories",
        "FOR EACH STATEMENT EXECUTE FUNCTION placement_unstock_all()",
    ),
    Trigger(
        "provider_usages_provider_moved",
        "AFTER UPDATE OF root_provider_id ON resource_providers",
        f"FOR EACH ROW WHEN ({_ANOTHER_ROOT}) EXECUTE FUNCTION placement_move_provider()",
    ),
    Trigger(
        "provider_usages_provider_deleted",
        "AFTER DELETE ON resource_providers",
        f"{_OLD} FOR EACH STATEMENT EXECUTE FUNCTION placement_forget_providers()",
    ),
)

POSTGRESQL = TriggerSet(TRIGGERS, FUNCTIONS)
