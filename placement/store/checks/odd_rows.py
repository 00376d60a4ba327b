"""Find rows that the schema allows and no server writes: readers pass them over, or read another value in their place.

They come from releases before Rocky, or were written by hand.
"""

from collections.abc import Iterator

from sqlalchemy import ColumnElement, Connection, and_, or_

from placement.domain.inventory import LARGEST_CAPACITY
from placement.store.checks.dangling import OF_NOTHING, BadRows
from placement.store.stock import StockSource
from placement.store.tables import allocations, inventories, resource_providers

_HAS = inventories.c
_CAPACITY = StockSource(keeps_usage=True).capacity


def _is_out_of_bounds() -> ColumnElement[bool]:
    # This way round because NaN is in no range.
    return ~and_(_CAPACITY < LARGEST_CAPACITY, _CAPACITY > -LARGEST_CAPACITY)


def _has_no_root() -> ColumnElement[bool]:
    return resource_providers.c.root_provider_id.is_(None)


ODD_AMOUNTS = (
    BadRows("inventories with a capacity beyond 2^45", inventories, _HAS.resource_provider_id, _is_out_of_bounds),
    BadRows(
        "inventories with a negative total or reserved amount",
        inventories,
        _HAS.resource_provider_id,
        lambda: or_(_HAS.total < 0, _HAS.reserved < 0),
    ),
    BadRows("inventories with a step_size below 1", inventories, _HAS.resource_provider_id, lambda: _HAS.step_size < 1),
    BadRows("allocations of less than 1", allocations, allocations.c.consumer_id, lambda: allocations.c.used < 1),
)
_ODD = (
    BadRows("providers without a root provider", resource_providers, resource_providers.c.uuid, _has_no_root),
    *OF_NOTHING,
    *ODD_AMOUNTS,
)


def odd_rows(connection: Connection, *, only_small_tables: bool = False) -> Iterator[str]:
    """Yield a line for each kind of odd row that there is.

    Args:
        connection: a connection.
        only_small_tables: whether to leave out allocations, which may be millions.
    """
    for kind in _ODD:
        if only_small_tables and kind.table is allocations:
            continue
        total, examples = kind.hits(connection)
        if total:
            yield f"{kind.what.capitalize()}: {total}, for example {', '.join(examples)}"
