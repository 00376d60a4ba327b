"""The triggers that keep ``provider_usages`` exact, whoever writes: texts, installation, and the first count.

They are not part of any migration: whatever a database has is compared with this release's definitions and, if it
differs, replaced, with a fresh count. A row whose usage falls to 0 stays: deleting and recreating it under load would
only breed deadlocks.

Those of SQLite and MariaDB fire for each row. Those of PostgreSQL on ``allocations`` fire once for each statement and
lock rows in ascending order, so that two statements cannot deadlock. Those on ``inventories`` fire for each row, which
is cheaper for the few that a provider has. To rule out deadlocks as well, PostgreSQL's triggers lock a provider's row
before its kept usage for writers that would lock it last: the reference changes the generation at the end.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from placement.store.connection.faults import passing_fault
from placement.store.stock import capacity_text
from placement.store.trigger_set import Trigger, TriggerSet, refusals_explained

_KEY = "resource_provider_id, resource_class_id"
_UNSTOCK = (
    "UPDATE provider_usages SET capacity = NULL "
    "WHERE resource_provider_id = OLD.resource_provider_id AND resource_class_id = OLD.resource_class_id;"
)
_MOVE = "UPDATE provider_usages SET root_provider_id = NEW.root_provider_id WHERE resource_provider_id = NEW.id"
_FORGET = "DELETE FROM provider_usages WHERE resource_provider_id = OLD.id AND used = 0;"
_REPLACED = "root_provider_id = excluded.root_provider_id, capacity = excluded.capacity"


def _stock(dialect: str, *, lock: str, if_there: str) -> str:
    """Return the statement that notes a provider's capacity of a class, unless the provider does not exist."""
    return (
        f"INSERT INTO provider_usages ({_KEY}, used, root_provider_id, capacity) "  # noqa: S608
        f"SELECT NEW.resource_provider_id, NEW.resource_class_id, 0, root_provider_id, {capacity_text(dialect, 'NEW')} "
        f"FROM resource_providers WHERE id = NEW.resource_provider_id {lock} {if_there};"
    )


@dataclass(frozen=True, slots=True)
class _RowTriggers:
    """The triggers of a database that calls them for each row: ``add`` is what an INSERT does to a row of usage."""

    body: str
    add: str
    stock: str
    move: str

    def triggers(self) -> Iterator[Trigger]:
        """Yield the triggers, the one that is created last at the end."""
        yield self._on("AFTER INSERT ON allocations", "inserted", self._use("NEW", ""))
        yield self._on("AFTER UPDATE ON allocations", "updated", self._use("OLD", "-") + self._use("NEW", ""))
        yield self._on("AFTER DELETE ON allocations", "deleted", self._use("OLD", "-"))
        yield self._on("AFTER INSERT ON inventories", "stocked", self.stock)
        yield self._on("AFTER UPDATE ON inventories", "restocked", f"{_UNSTOCK} {self.stock}")
        yield self._on("AFTER DELETE ON inventories", "unstocked", _UNSTOCK)
        yield self._on("AFTER UPDATE ON resource_providers", "provider_moved", self.move)
        yield self._on("AFTER DELETE ON resource_providers", "provider_deleted", _FORGET)

    def _on(self, event: str, name: str, code: str) -> Trigger:
        return Trigger(f"provider_usages_{name}", event, self.body.format(code))

    def _use(self, row: str, sign: str) -> str:
        return (
            f"INSERT INTO provider_usages ({_KEY}, used) "  # noqa: S608
            f"VALUES ({row}.resource_provider_id, {row}.resource_class_id, {sign}{row}.used) {self.add}; "
        )


# Not INSERT OR IGNORE: inside a trigger the outer statement's conflict policy (OR REPLACE) would override it.
_ON_CONFLICT = f"ON CONFLICT ({_KEY}) DO UPDATE SET"
SQLITE = TriggerSet(
    [
        *_RowTriggers(
            body="BEGIN {} END",
            add=f"{_ON_CONFLICT} used = used + excluded.used",
            stock=_stock("sqlite", lock="", if_there=f"{_ON_CONFLICT} {_REPLACED}"),
            move=f"{_MOVE} AND NEW.root_provider_id IS NOT OLD.root_provider_id;",
        ).triggers()
    ]
)
MARIADB = TriggerSet(
    [
        *_RowTriggers(
            body="FOR EACH ROW BEGIN {} END",
            add="ON DUPLICATE KEY UPDATE used = used + VALUES(used)",
            stock=_stock(
                "mysql",
                lock="FOR UPDATE",
                if_there="ON DUPLICATE KEY UPDATE root_provider_id = VALUES(root_provider_id), "
                "capacity = VALUES(capacity)",
            ),
            move=f"IF NOT NEW.root_provider_id <=> OLD.root_provider_id THEN {_MOVE}; END IF;",
        ).triggers()
    ]
)
"""The last one is created once everything has been counted: if all of them exist, the count is exact."""


WRITE_GATE_KEY = 0x706C_6163_656D_6E74
"""The advisory lock held by writers of allocations: see ``store/locks.py``."""

GATE_SETTING = "placement.write_gate"
"""The transaction-local setting by which this server tells the triggers that it has passed the gate."""

_IS_FOREIGN = f"current_setting('{GATE_SETTING}', true) IS DISTINCT FROM 'passed'"


def _lock_providers(rows: str) -> str:
    # As an array: PostgreSQL estimates so many rows for the set itself that it would scan all providers.
    return (
        f"PERFORM 1 FROM resource_providers WHERE id = ANY (ARRAY(SELECT resource_provider_id FROM {rows})) "  # noqa: S608
        "ORDER BY id FOR NO KEY UPDATE;"
    )


def _add(locked: str, changes: str) -> str:
    """Return the code that adds amounts to the usage: those of foreign writers under locks."""
    return (
        f"IF {_IS_FOREIGN} THEN {_lock_providers(locked)} END IF; "  # noqa: S608
        f"INSERT INTO provider_usages AS kept ({_KEY}, used) "
        f"SELECT {_KEY}, sum(used) FROM {changes} AS changes GROUP BY 1, 2 HAVING sum(used) <> 0 ORDER BY 1, 2 "
        f"ON CONFLICT ({_KEY}) DO UPDATE SET used = kept.used + excluded.used;"
    )


_LESS = f"SELECT {_KEY}, -used AS used FROM old_rows"  # noqa: S608
_CHANGES = f"(SELECT {_KEY}, used FROM new_rows UNION ALL {_LESS})"  # noqa: S608
_FUNCTIONS = {
    "keep_usage": f"""
    IF TG_OP = 'INSERT' THEN {_add("new_rows", "new_rows")}
    ELSIF TG_OP = 'DELETE' THEN {_add("old_rows", f"({_LESS})")}
    ELSIF TG_OP = 'UPDATE' THEN {_add("(TABLE old_rows UNION ALL TABLE new_rows) AS changed", _CHANGES)}
    ELSE UPDATE provider_usages SET used = 0 WHERE used <> 0;
    END IF;""",  # noqa: S608
    "stock": _stock("postgresql", lock="FOR NO KEY UPDATE", if_there=f"{_ON_CONFLICT} {_REPLACED}"),
    "unstock": f"PERFORM 1 FROM resource_providers WHERE id = OLD.resource_provider_id FOR NO KEY UPDATE; {_UNSTOCK}",
    "unstock_all": "UPDATE provider_usages SET capacity = NULL WHERE capacity IS NOT NULL;",
    "move_provider": f"{_MOVE};",
    "forget_providers": (
        "DELETE FROM provider_usages WHERE used = 0 AND resource_provider_id = ANY (ARRAY(SELECT id FROM old_rows));"
    ),
    "write_gate": f"IF {_IS_FOREIGN} THEN PERFORM pg_advisory_xact_lock({WRITE_GATE_KEY}); END IF;",
}

_OLD, _NEW = "REFERENCING OLD TABLE AS old_rows", "REFERENCING NEW TABLE AS new_rows"
_ONCE = "FOR EACH STATEMENT"
_ELSEWHERE = "(OLD.resource_provider_id, OLD.resource_class_id) <> (NEW.resource_provider_id, NEW.resource_class_id)"
_ANOTHER_ROOT = "OLD.root_provider_id IS DISTINCT FROM NEW.root_provider_id"
_ON_POSTGRESQL = (
    ("gate", "BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON allocations", _ONCE, "write_gate"),
    ("inserted", "AFTER INSERT ON allocations", f"{_NEW} {_ONCE}", "keep_usage"),
    ("updated", "AFTER UPDATE ON allocations", f"{_OLD} NEW TABLE AS new_rows {_ONCE}", "keep_usage"),
    ("deleted", "AFTER DELETE ON allocations", f"{_OLD} {_ONCE}", "keep_usage"),
    ("truncated", "AFTER TRUNCATE ON allocations", _ONCE, "keep_usage"),
    ("stocked", "AFTER INSERT OR UPDATE ON inventories", "FOR EACH ROW", "stock"),
    ("restocked", "AFTER UPDATE ON inventories", f"FOR EACH ROW WHEN ({_ELSEWHERE})", "unstock"),
    ("unstocked", "AFTER DELETE ON inventories", "FOR EACH ROW", "unstock"),
    ("emptied", "AFTER TRUNCATE ON inventories", _ONCE, "unstock_all"),
    (
        "provider_moved",
        "AFTER UPDATE OF root_provider_id ON resource_providers",
        f"FOR EACH ROW WHEN ({_ANOTHER_ROOT})",
        "move_provider",
    ),
    ("provider_deleted", "AFTER DELETE ON resource_providers", f"{_OLD} {_ONCE}", "forget_providers"),
)
POSTGRESQL = TriggerSet(
    [
        Trigger(f"provider_usages_{name}", event, f"{called} EXECUTE FUNCTION placement_{function}()")
        for name, event, called, function in _ON_POSTGRESQL
    ],
    {f"placement_{name}": f"BEGIN {body} RETURN NULL; END" for name, body in _FUNCTIONS.items()},
)
_SETS = {"postgresql": POSTGRESQL, "sqlite": SQLITE, "mysql": MARIADB}

COUNT_TRIES = 5

_COUNTED = ("allocations", "inventories", "resource_providers")
_COUNT = """
INSERT INTO provider_usages (resource_provider_id, resource_class_id, used, root_provider_id, capacity)
SELECT resource_provider_id, resource_class_id, SUM(used), MAX(root_provider_id), SUM(capacity)
FROM (
    SELECT resource_provider_id, resource_class_id, 0 AS used, root_provider_id, {capacity} AS capacity
    FROM inventories JOIN resource_providers ON resource_providers.id = resource_provider_id
    UNION ALL SELECT resource_provider_id, resource_class_id, used, NULL, NULL FROM allocations
) AS counted
GROUP BY resource_provider_id, resource_class_id
"""


def triggers_in_place(connection: Connection) -> bool:
    """Tell whether every trigger exists, is enabled and is defined as in this release. Takes one small query."""
    return _SETS[connection.dialect.name].is_in_place(connection)


def install(connection: Connection) -> None:
    """Recreate the triggers and count what they start from, without other writers (``maintenance.exclusively``).

    MariaDB commits at each step, so there the last trigger is created after the count: an interrupted installation is
    never mistaken for a complete one. TriggersRefused if MariaDB denies the privilege.
    """
    remove(connection)
    match connection.dialect.name:
        case "mysql":
            *counting, last = MARIADB.triggers
            with refusals_explained(connection, remove, "usage is summed at each request. To have it kept"):
                TriggerSet(counting).create(connection)
                _count_on_mariadb(connection)
                TriggerSet([last]).create(connection)
            return
        case "postgresql":
            connection.exec_driver_sql(f"LOCK TABLE {', '.join(_COUNTED)} IN SHARE ROW EXCLUSIVE MODE")
    _SETS[connection.dialect.name].create(connection)
    _count(connection)


def remove(connection: Connection) -> None:
    """Drop whichever of the triggers and their functions exist."""
    _SETS[connection.dialect.name].drop(connection)


def _count(connection: Connection) -> None:
    connection.exec_driver_sql("DELETE FROM provider_usages")
    connection.exec_driver_sql(_COUNT.format(capacity=capacity_text(connection.dialect.name, "inventories")))


def _count_on_mariadb(connection: Connection) -> None:
    """Count under locks on every row and every gap: unlike LOCK TABLES, these hold on Galera as well.

    A writer that already holds some of them and waits for more causes a deadlock, which this side loses and retries.
    """
    for tries_left in reversed(range(COUNT_TRIES)):
        connection.commit()
        try:
            for table in _COUNTED:
                connection.exec_driver_sql(f"SELECT SUM(id) FROM {table} FORCE INDEX (PRIMARY) LOCK IN SHARE MODE")  # noqa: S608
            _count(connection)
            connection.commit()
        except DBAPIError as error:
            connection.rollback()
            if passing_fault(error) is None or not tries_left:
                raise
        else:
            return
