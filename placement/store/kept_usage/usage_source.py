"""Where usage is read from: kept per provider and class where triggers do that, otherwise summed up each time."""

from sqlalchemy import BigInteger, FromClause, cast, func, select

from placement.store.connection.unit_of_work import Transaction
from placement.store.tables import allocations, provider_usages

_SUMMED = (
    select(
        allocations.c.resource_provider_id,
        allocations.c.resource_class_id,
        # MariaDB sums integers to decimals.
        cast(func.sum(allocations.c.used), BigInteger).label("used"),
    )
    .group_by(allocations.c.resource_provider_id, allocations.c.resource_class_id)
    .subquery("summed_usages")
)


def usage_rows(tx: Transaction) -> FromClause:
    """Return something to select from with ``resource_provider_id``, ``resource_class_id`` and ``used``.

    A provider and class without a row uses nothing.
    """
    return usage_source(keeps_usage=tx.database.keeps_usage)


def usage_source(*, keeps_usage: bool) -> FromClause:
    """Return the same for statements that are made before there is a transaction."""
    return provider_usages if keeps_usage else _SUMMED
