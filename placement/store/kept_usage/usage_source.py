"""Where usage is read from: rows that triggers keep for each provider and class, or else a sum over allocations."""

from sqlalchemy import BigInteger, FromClause, cast, func, select

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


def usage_source(*, keeps_usage: bool) -> FromClause:
    """Return a selectable with ``resource_provider_id``, ``resource_class_id`` and ``used``.

    A provider and class without a row has no usage.
    """
    return provider_usages if keeps_usage else _SUMMED
