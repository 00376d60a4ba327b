"""Making, checking and removing the triggers that keep ``provider_usages`` exact, and counting what they start from.

They are no part of a migration's history: whatever stands in a database is compared with the text this release has,
and made anew, with a fresh count, where it differs.
"""

from collections.abc import Callable

from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from placement.errors import PlacementError
from placement.store.connection.retry import transient_reason
from placement.store.kept_usage import mariadb_triggers, postgresql_triggers, sqlite_triggers

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
_MARIADB_REFUSALS = {
    1142: "GRANT TRIGGER ON this database to the user of the server",
    1227: "GRANT TRIGGER ON this database to the user of the server",
    1419: "SET GLOBAL log_bin_trust_function_creators = 1",
}


class TriggersRefused(PlacementError):
    """The database refuses to make triggers."""


def triggers_in_place(connection: Connection) -> bool:
    """Tell whether every trigger is there, enabled, and as this release makes it. One or two small queries."""
    return _IN_PLACE[connection.dialect.name](connection)


def install(connection: Connection) -> None:
    """Make the triggers anew and count what they start from, while nobody else can write it.

    Within a transaction of ``schema_lock.exclusively``. MariaDB commits at each step; there the last trigger is made
    after the count, so that an interrupted installation is not taken for a finished one.

    Raises:
        TriggersRefused: MariaDB withholds the privilege; the message names the missing grant.
    """
    remove(connection)
    _INSTALL[connection.dialect.name](connection)


def remove(connection: Connection) -> None:
    """Drop the triggers and their functions, as far as they are there."""
    dialect = connection.dialect.name
    for trigger in _TRIGGERS[dialect].TRIGGERS:
        on_table = f" ON {trigger.table}" if dialect == "postgresql" else ""
        connection.exec_driver_sql(f"DROP TRIGGER IF EXISTS {trigger.name}{on_table}")
    if dialect == "postgresql":
        for function in postgresql_triggers.FUNCTIONS:
            connection.exec_driver_sql(f"DROP FUNCTION IF EXISTS {function}()")


def _install_in_one_transaction(connection: Connection) -> None:
    for trigger in _TRIGGERS[connection.dialect.name].TRIGGERS:
        connection.exec_driver_sql(trigger.create)
    _count(connection)


def _count(connection: Connection) -> None:
    connection.exec_driver_sql("DELETE FROM provider_usages")
    capacity = _TRIGGERS[connection.dialect.name].capacity("inventories")
    connection.exec_driver_sql(_COUNT.format(capacity=capacity))


def _install_postgresql(connection: Connection) -> None:
    connection.exec_driver_sql(f"LOCK TABLE {', '.join(_COUNTED)} IN SHARE ROW EXCLUSIVE MODE")
    # Run with the owner's rights and by fixed names: a user who may write allocations need not know of our table.
    schema = connection.execute(text("SELECT quote_ident(current_schema())")).scalar_one()
    for name, body in postgresql_triggers.FUNCTIONS.items():
        connection.exec_driver_sql(
            f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER "
            f"SET search_path = {schema}, pg_temp AS $body${body}$body$"
        )
    _install_in_one_transaction(connection)


def _install_mariadb(connection: Connection) -> None:
    *counting, last = mariadb_triggers.TRIGGERS
    try:
        for trigger in counting:
            connection.exec_driver_sql(trigger.create)
        _count_mariadb(connection)
        connection.exec_driver_sql(last.create)
    except DBAPIError as error:
        code = error.orig.args[0] if error.orig is not None and error.orig.args else None
        if code not in _MARIADB_REFUSALS:
            raise
        remove(connection)
        raise TriggersRefused(
            f"The database refuses to make triggers ({code}), so usage is summed at each request. To have it kept: "
            f"{_MARIADB_REFUSALS[code]}, then run 'placement db upgrade' again."
        ) from error


def _count_mariadb(connection: Connection) -> None:
    """Count behind locks on every row to be counted and every gap: they hold on Galera too, unlike LOCK TABLES.

    A writer that already holds some of them and wants more makes a deadlock, which this side loses: it tries again.
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
            if transient_reason(error) is None or not tries_left:
                raise
        else:
            return


def _in_place_postgresql(connection: Connection) -> bool:
    triggers = connection.execute(
        text(
            "SELECT t.tgname, p.proname, p.prosrc FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid "
            "WHERE t.tgrelid IN "
            "(to_regclass('allocations'), to_regclass('inventories'), to_regclass('resource_providers')) "
            "AND t.tgenabled IN ('O', 'A') AND NOT t.tgisinternal"
        )
    )
    found = {name for name, function, body in triggers if postgresql_triggers.FUNCTIONS.get(function) == body}
    return found >= {trigger.name for trigger in postgresql_triggers.TRIGGERS}


def _in_place_sqlite(connection: Connection) -> bool:
    texts = connection.execute(text("SELECT sql FROM sqlite_master WHERE type = 'trigger'")).scalars()
    return set(texts) >= {trigger.create for trigger in sqlite_triggers.TRIGGERS}


def _in_place_mariadb(connection: Connection) -> bool:
    rows = connection.execute(
        text("SELECT trigger_name, action_statement FROM information_schema.triggers WHERE trigger_schema = DATABASE()")
    )
    wanted = {(trigger.name, trigger.body.removeprefix("FOR EACH ROW ")) for trigger in mariadb_triggers.TRIGGERS}
    return {tuple(row) for row in rows} >= wanted


_TRIGGERS = {
    "postgresql": postgresql_triggers,
    "sqlite": sqlite_triggers,
    "mysql": mariadb_triggers,
    "mariadb": mariadb_triggers,
}
_INSTALL: dict[str, Callable[[Connection], None]] = {
    "postgresql": _install_postgresql,
    "sqlite": _install_in_one_transaction,
    "mysql": _install_mariadb,
    "mariadb": _install_mariadb,
}
_IN_PLACE: dict[str, Callable[[Connection], bool]] = {
    "postgresql": _in_place_postgresql,
    "sqlite": _in_place_sqlite,
    "mysql": _in_place_mariadb,
    "mariadb": _in_place_mariadb,
}
