"""Making, checking and removing the triggers that keep ``provider_usages`` exact, and counting what they start from.

They are no part of a migration's history: whatever stands in a database is compared with the text this release has,
and made anew, with a fresh count, where it differs.
"""

from collections.abc import Callable

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from placement.store.connection.faults import passing_fault
from placement.store.kept_usage import mariadb_triggers, postgresql_triggers, sqlite_triggers
from placement.store.trigger_set import TriggerSet, refusals_explained

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
    """Tell whether every trigger is there, enabled, and as this release makes it. One small query."""
    return _SETS[connection.dialect.name].is_in_place(connection)


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
    _SETS[connection.dialect.name].drop(connection)


def _install_in_one_transaction(connection: Connection) -> None:
    _SETS[connection.dialect.name].create(connection)
    _count(connection)


def _count(connection: Connection) -> None:
    connection.exec_driver_sql("DELETE FROM provider_usages")
    connection.exec_driver_sql(_COUNT.format(capacity=_CAPACITY[connection.dialect.name]("inventories")))


def _install_postgresql(connection: Connection) -> None:
    connection.exec_driver_sql(f"LOCK TABLE {', '.join(_COUNTED)} IN SHARE ROW EXCLUSIVE MODE")
    _install_in_one_transaction(connection)


def _install_mariadb(connection: Connection) -> None:
    *counting, last = mariadb_triggers.TRIGGERS
    with refusals_explained(connection, remove, "usage is summed at each request. To have it kept"):
        TriggerSet(counting).create(connection)
        _count_mariadb(connection)
        TriggerSet([last]).create(connection)


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
            if passing_fault(error) is None or not tries_left:
                raise
        else:
            return


_SETS = {
    "postgresql": postgresql_triggers.SET,
    "sqlite": sqlite_triggers.SET,
    "mysql": mariadb_triggers.SET,
    "mariadb": mariadb_triggers.SET,
}
_CAPACITY: dict[str, Callable[[str], str]] = {
    "postgresql": postgresql_triggers.capacity,
    "sqlite": sqlite_triggers.capacity,
    "mysql": mariadb_triggers.capacity,
    "mariadb": mariadb_triggers.capacity,
}
_INSTALL: dict[str, Callable[[Connection], None]] = {
    "postgresql": _install_postgresql,
    "sqlite": _install_in_one_transaction,
    "mysql": _install_mariadb,
    "mariadb": _install_mariadb,
}
