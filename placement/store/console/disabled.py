"""The hosts that nova has disabled, according to the trait on their roots."""

import os_traits
from sqlalchemy import Select, select

from placement.store.connection.unit_of_work import Transaction
from placement.store.providers import RP
from placement.store.search.ranges import HAS_ROOT
from placement.store.tables import resource_provider_traits

DISABLED: str = os_traits.COMPUTE_STATUS_DISABLED
"""The trait that nova puts on the root of a host whose compute service is disabled."""

_HAS = resource_provider_traits.c


def with_disabled(tx: Transaction) -> Select[tuple[int]]:
    """Return a query for the providers that have the trait."""
    trait = tx.names.traits.ids(tx.connection, [DISABLED]).get(DISABLED)
    return select(_HAS.resource_provider_id).where(_HAS.trait_id == trait)


def disabled_hosts(tx: Transaction) -> set[int]:
    """Return the roots of the trees in which any provider has the trait."""
    query = select(RP.root_provider_id).where(RP.id.in_(with_disabled(tx)), HAS_ROOT).distinct()
    return {root for (root,) in tx.tuples(query)}
