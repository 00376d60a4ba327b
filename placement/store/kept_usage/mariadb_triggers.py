"""The triggers of MariaDB, which fire for each row."""

from placement.store.kept_usage.trigger import (
    DELETED,
    INSERTED,
    PROVIDER_DELETED,
    PROVIDER_MOVED,
    RESTOCKED,
    STOCKED,
    UNSTOCKED,
    UPDATED,
)
from placement.store.stock import capacity_text
from placement.store.trigger_set import Trigger, TriggerSet


def _use(row: str, sign: str) -> str:
    return (
        "INSERT INTO provider_usages (resource_provider_id, resource_class_id, used) "  # noqa: S608
        f"VALUES ({row}.resource_provider_id, {row}.resource_class_id, {sign}{row}.used) "
        "ON DUPLICATE KEY UPDATE used = used + VALUES(used)"
    )


_UNSTOCK = (
    "UPDATE provider_usages SET capacity = NULL "
    "WHERE resource_provider_id = OLD.resource_provider_id AND resource_class_id = OLD.resource_class_id"
)
_STOCK = (
    "INSERT INTO provider_usages (resource_provider_id, resource_class_id, used, root_provider_id, capacity) "  # noqa: S608
    f"SELECT NEW.resource_provider_id, NEW.resource_class_id, 0, root_provider_id, {capacity_text('mariadb', 'NEW')} "
    "FROM resource_providers WHERE id = NEW.resource_provider_id FOR UPDATE "
    "ON DUPLICATE KEY UPDATE root_provider_id = VALUES(root_provider_id), capacity = VALUES(capacity)"
)
_MOVE = (
    "IF NOT NEW.root_provider_id <=> OLD.root_provider_id THEN "
    "UPDATE provider_usages SET root_provider_id = NEW.root_provider_id WHERE resource_provider_id = NEW.id; END IF"
)
_FORGET = "DELETE FROM provider_usages WHERE resource_provider_id = OLD.id AND used = 0"

TRIGGERS = (
    Trigger(INSERTED, "AFTER INSERT ON allocations", f"FOR EACH ROW {_use('NEW', '')}"),
    Trigger(UPDATED, "AFTER UPDATE ON allocations", f"FOR EACH ROW BEGIN {_use('OLD', '-')}; {_use('NEW', '')}; END"),
    Trigger(DELETED, "AFTER DELETE ON allocations", f"FOR EACH ROW {_use('OLD', '-')}"),
    Trigger(STOCKED, "AFTER INSERT ON inventories", f"FOR EACH ROW {_STOCK}"),
    Trigger(RESTOCKED, "AFTER UPDATE ON inventories", f"FOR EACH ROW BEGIN {_UNSTOCK}; {_STOCK}; END"),
    Trigger(UNSTOCKED, "AFTER DELETE ON inventories", f"FOR EACH ROW {_UNSTOCK}"),
    Trigger(PROVIDER_MOVED, "AFTER UPDATE ON resource_providers", f"FOR EACH ROW {_MOVE}"),
    Trigger(PROVIDER_DELETED, "AFTER DELETE ON resource_providers", f"FOR EACH ROW {_FORGET}"),
)
"""The last one is created once everything has been counted: if all of them exist, the count is exact."""

SET = TriggerSet(TRIGGERS)
