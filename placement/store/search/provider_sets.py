"""Which providers meet a condition on single providers: one query for each kind, set-based, whatever they have left.

A request's groups compose these sets. Amounts play no part, so a set holds until a link of its trait or aggregate
changes, and another request with the same condition sends no query.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from sqlalchemy import Column, LargeBinary, bindparam, cast, func, literal_column, select

from placement.cloud.columns import Ints
from placement.store.connection.prepared import PreparedStatement
from placement.store.connection.unit_of_work import Transaction
from placement.store.tables import resource_provider_aggregates, resource_provider_traits

_HAS = resource_provider_traits.c
_IN = resource_provider_aggregates.c


class _Holders:
    """The statements for the ids of the providers that a column links with something."""

    def __init__(self, held: Column[int]) -> None:
        holder, wanted = held.table.c.resource_provider_id, held == bindparam("held")
        self._rows = PreparedStatement(select(holder).where(wanted))
        # One binary value: 100,000 ids as rows would take 50 ms of the client.
        portion = func.string_agg(func.int4send(holder), cast(literal_column("''"), LargeBinary))
        self._together = PreparedStatement(select(portion).where(wanted))

    def of(self, tx: Transaction, held: int) -> Ints:
        """Return the ids, in ascending order."""
        if tx.dialect == "postgresql":
            ((portions,),) = tx.tuples(self._together, {"held": held})
            ids = np.frombuffer(portions or b"", dtype=">i4").astype(np.int64)
        else:
            ids = np.array([id_ for (id_,) in tx.tuples(self._rows, {"held": held})], dtype=np.int64)
        ids.sort()
        return ids


_OWNERS, _MEMBERS = _Holders(_HAS.trait_id), _Holders(_IN.aggregate_id)

_AGGREGATES_OF = PreparedStatement(
    select(_IN.resource_provider_id, _IN.aggregate_id).where(
        _IN.resource_provider_id.in_(bindparam("providers", expanding=True))
    ),
    by_key=True,
)


def providers_with_trait(tx: Transaction, trait_id: int) -> Ints:
    """Return the ids of the providers that have a trait, in ascending order."""
    return _OWNERS.of(tx, trait_id)


def providers_in_aggregate(tx: Transaction, aggregate_id: int) -> Ints:
    """Return the ids of the members of an aggregate, in ascending order."""
    return _MEMBERS.of(tx, aggregate_id)


def aggregates_of(tx: Transaction, providers: Collection[int]) -> Mapping[int, Collection[int]]:
    """Return the ids of the aggregates that some providers are in."""
    found: dict[int, list[Any]] = defaultdict(list)
    if providers:
        for provider, aggregate in tx.tuples(_AGGREGATES_OF, {"providers": sorted(providers)}):
            found[provider].append(aggregate)
    return found
