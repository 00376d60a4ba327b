"""The triggers of SQLite, which fire for each row."""

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

TRIGGERS = (
    Trigger(INSERTED, "AFTER INSERT ON allocations", f"BEGIN {_use('NEW', '+')} END"),
    Trigger(
        UPDATED,
        "AFTER UPDATE OF resource_provider_id, resource_class_id, used ON allocations",
        f"BEGIN {_use('OLD', '-')} {_use('NEW', '+')} END",
    ),
    Trigger(DELETED, "AFTER DELETE ON allocations", f"BEGIN {_use('OLD', '-')} END"),
    Trigger(STOCKED, "AFTER INSERT ON inventories", f"BEGIN {_STOCK} END"),
    Trigger(RESTOCKED, "AFTER UPDATE ON inventories", f"BEGIN {_UNSTOCK} {_STOCK} END"),
    Trigger(UNSTOCKED, "AFTER DELETE ON inventories", f"BEGIN {_UNSTOCK} END"),
    Trigger(PROVIDER_MOVED, "AFTER UPDATE OF root_provider_id ON resource_providers", f"BEGIN {_MOVE} END"),
    Trigger(PROVIDER_DELETED, "AFTER DELETE ON resource_providers", f"BEGIN {_FORGET} END"),
)

SET = TriggerSet(TRIGGERS)
