"""The triggers of SQLite and MariaDB, which fire for each row."""

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
