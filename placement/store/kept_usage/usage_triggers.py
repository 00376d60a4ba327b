"""Install, check and remove the triggers that keep ``provider_usages`` exact, and count the usage they start from.

They are not part of any migration: whatever a database has is compared with this release's definitions and, if it
differs, replaced, with a fresh count.

A row of ``provider_usages`` holds a provider's usage of a class, whoever writes: this server, the reference, or an
operator with a SQL shell. It also holds the provider's ``capacity`` of the class (null without an inventory) and the
root of its tree, so that whole trees are summed without a join. A row whose usage falls to 0 stays: deleting and
recreating it under load would only breed deadlocks.
"""

from collections.abc import Callable

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from placement.store.connection.faults import passing_fault
from placement.store.kept_usage.trigger_texts import MARIADB, POSTGRESQL, SQLITE
from placement.store.stock import capacity_text
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
    """Tell whether every trigger exists, is enabled and is defined as in this release. Takes one small query."""
    return _SETS[connection.dialect.name].is_in_place(connection)


def install(connection: Connection) -> None:
    """Recreate the triggers and count what they start from, keeping all other writers out.

    Runs in a transaction of ``maintenance.exclusively``. MariaDB commits at each step, so there the last trigger is
    created after the count: an interrupted installation is never mistaken for a complete one.

    Raises:
        TriggersRefused: MariaDB denies the privilege; the message names the missing grant.
    """
    remove(connection)
    _INSTALL[connection.dialect.name](connection)


def remove(connection: Connection) -> None:
    """Drop whichever of the triggers and their functions exist."""
    _SETS[connection.dialect.name].drop(connection)


def _install_in_one_transaction(connection: Connection) -> None:
    _SETS[connection.dialect.name].create(connection)
    _count(connection)


def _count(connection: Connection) -> None:
    connection.exec_driver_sql("DELETE FROM provider_usages")
    connection.exec_driver_sql(_COUNT.format(capacity=capacity_text(connection.dialect.name, "inventories")))


def _install_postgresql(connection: Connection) -> None:
    connection.exec_driver_sql(f"LOCK TABLE {', '.join(_COUNTED)} IN SHARE ROW EXCLUSIVE MODE")
    _install_in_one_transaction(connection)


def _install_mariadb(connection: Connection) -> None:
    *counting, last = MARIADB.triggers
    with refusals_explained(connection, remove, "usage is summed at each request. To have it kept"):
        TriggerSet(counting).create(connection)
        _count_mariadb(connection)
        TriggerSet([last]).create(connection)


def _count_mariadb(connection: Connection) -> None:
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


_SETS = {"postgresql": POSTGRESQL, "sqlite": SQLITE, "mysql": MARIADB}
_INSTALL: dict[str, Callable[[Connection], None]] = {
    "postgresql": _install_postgresql,
    "sqlite": _install_in_one_transaction,
    "mysql": _install_mariadb,
}
