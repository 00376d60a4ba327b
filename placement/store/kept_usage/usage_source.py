"""Where usage is read from: kept per provider and class where triggers do that, otherwise summed up each time."""

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
    """Return something to select from with ``resource_provider_id``, ``resource_class_id`` and ``used``.

    A provider and class without a row uses nothing.
    """
    return provider_usages if keeps_usage else _SUMMED
