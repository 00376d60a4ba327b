"""The gate to ``allocations``, and exclusively held places: those whose level's lock class is used up.

Whoever takes a place exclusively locks all providers below it first (``services/planner/claims.py``), so that
anyone who has locked one of them sees the lock here.
"""

from collections.abc import Collection
from functools import lru_cache
from typing import NamedTuple

from sqlalchemy import Connection, bindparam, select, text

from placement.store.connection.database import Transaction
from placement.store.connection.statements import KeyedStatement, PreparedStatement
from placement.store.kept_usage import GATE_SETTING, WRITE_GATE_KEY
from placement.store.names import UsedLocks
from placement.store.stock import stock_by_tree
from placement.store.tables import resource_provider_traits, resource_providers, traits

_RP = resource_providers.c


class ExclusivePlace(NamedTuple):
    """A provider whose lock class is used up."""

    id: int
    root: int
    class_id: int
    capacity: int
    used: int

    @property
    def lock(self) -> tuple[int, int]:
        """The locking inventory, as provider and class."""
        return self.id, self.class_id


def held_around(tx: Transaction, locks: UsedLocks, providers: Collection[int]) -> list[ExclusivePlace]:
    """Return the exclusively held places in the trees of some providers, which have the trait of the lock's level."""
    values = {"providers": sorted(providers), "locks": sorted(locks)}
    rows = tx.tuples(_held(keeps_usage=tx.database.keeps_usage), values)
    places = [ExclusivePlace(id_, root, lock, int(capacity), int(used)) for id_, root, lock, capacity, used in rows]
    names = sorted({trait for trait in locks.values() if trait is not None})
    has = {*_HAS.tuples(tx.connection, {place.id for place in places}, {"names": names})} if names else ()
    return [place for place in places if (trait := locks[place.class_id]) is None or (place.id, trait) in has]


_HAS = KeyedStatement(
    select(resource_provider_traits.c.resource_provider_id, traits.c.name)
    .join(traits, traits.c.id == resource_provider_traits.c.trait_id)
    .where(traits.c.name.in_(bindparam("names", expanding=True))),
    resource_provider_traits.c.resource_provider_id,
)


@lru_cache
def _held(*, keeps_usage: bool) -> PreparedStatement:
    """Return the statement for rows of ExclusivePlace in the trees of ``providers``."""
    stock = stock_by_tree(keeps_usage=keeps_usage).c
    trees = select(_RP.root_provider_id).where(_RP.id.in_(bindparam("providers", expanding=True)))
    return PreparedStatement(
        select(
            stock.resource_provider_id, stock.root_provider_id, stock.resource_class_id, stock.capacity, stock.used
        ).where(
            stock.resource_class_id.in_(bindparam("locks", expanding=True)),
            stock.used > 0,
            stock.used >= stock.capacity,
            stock.root_provider_id.in_(trees),
        )
    )


_PASS = PreparedStatement(
    text(f"SELECT set_config('{GATE_SETTING}', 'passed', true), pg_advisory_xact_lock_shared({WRITE_GATE_KEY})")
)


def pass_write_gate(connection: Connection) -> None:
    """Announce that this transaction will write allocations; on PostgreSQL this must be its first statement.

    Without it the trigger would treat the transaction as foreign: slower, perhaps a deadlock to retry, but correct.
    """
    if connection.dialect.name == "postgresql":
        _PASS.tuples(connection)
