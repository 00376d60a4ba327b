"""Which providers meet a condition on single providers: one query for each kind, set-based, whatever they have left.

A request's groups compose these sets. Amounts play no part, so a set holds until a link of its trait or aggregate
changes, and another request with the same condition sends no query.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from sqlalchemy import Column, LargeBinary, bindparam, cast, func, literal_column, select

from placement.cloud.providers import Ints
from placement.store.connection.prepared import PreparedStatement
from placement.store.connection.unit_of_work import Transaction
from placement.store.tables import resource_provider_aggregates, resource_provider_traits

_HAS = resource_provider_traits.c
_IN = resource_provider_aggregates.c


class _SetsOf:
    """The statements for the ids of the providers that a column links with each of some ids."""

    def __init__(self, held: Column[int]) -> None:
        holder, is_wanted = held.table.c.resource_provider_id, held.in_(bindparam("held", expanding=True))
        self._rows = PreparedStatement(select(held, holder).where(is_wanted))
        # One binary value for each: 100,000 ids as rows would take 50 ms of the client.
        together = func.string_agg(func.int4send(holder), cast(literal_column("''"), LargeBinary))
        self._together = PreparedStatement(select(held, together).where(is_wanted).group_by(held))

    def providers(self, tx: Transaction, held: Collection[int]) -> dict[int, Ints]:
        """Return the providers of each, in ascending order."""
        sets: dict[int, Ints] = {}
        if tx.dialect == "postgresql":
            for id_, together in tx.tuples(self._together, {"held": sorted(held)}):
                sets[id_] = np.frombuffer(together, dtype=">i4").astype(np.int64)
        else:
            table = np.array(tx.tuples(self._rows, {"held": sorted(held)}), dtype=np.int64).reshape(-1, 2)
            sets = {id_: table[table[:, 0] == id_, 1] for id_ in held}
        return {id_: np.sort(sets.get(id_, _NOBODY)) for id_ in held}


_NOBODY: Ints = np.zeros(0, dtype=np.int64)
_OWNERS, _MEMBERS = _SetsOf(_HAS.trait_id), _SetsOf(_IN.aggregate_id)

_AGGREGATES_OF = PreparedStatement(
    select(_IN.resource_provider_id, _IN.aggregate_id).where(
        _IN.resource_provider_id.in_(bindparam("providers", expanding=True))
    ),
    by_key=True,
)


def owners_of_traits(tx: Transaction, trait_ids: Collection[int]) -> dict[int, Ints]:
    """Return the ids of the providers that have each of some traits, in ascending order. One query."""
    return _OWNERS.providers(tx, trait_ids)


def members_of_aggregates(tx: Transaction, aggregate_ids: Collection[int]) -> dict[int, Ints]:
    """Return the ids of the members of each of some aggregates, in ascending order. One query."""
    return _MEMBERS.providers(tx, aggregate_ids)


def aggregates_of(tx: Transaction, providers: Collection[int]) -> Mapping[int, Collection[int]]:
    """Return the ids of the aggregates that some providers are in."""
    aggregates: dict[int, list[Any]] = defaultdict(list)
    if providers:
        for provider, aggregate in tx.tuples(_AGGREGATES_OF, {"providers": sorted(providers)}):
            aggregates[provider].append(aggregate)
    return aggregates
