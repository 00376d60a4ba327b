"""Use cases for the aggregates of providers."""

from collections.abc import Collection

from placement.errors import ProviderNotFound
from placement.store import marks as store
from placement.store.connection.unit_of_work import Transaction, reads_once, writes
from placement.store.marks import Membership
from placement.store.providers import advance_generation, locked_provider, locked_provider_at


@reads_once
def membership(tx: Transaction, uuid: str) -> Membership:
    """Return the aggregates of a provider."""
    found = store.membership(tx, uuid)
    if found is None:
        raise ProviderNotFound(uuid)
    return found


@writes
def replace_aggregates(tx: Transaction, uuid: str, aggregates: Collection[str]) -> None:
    """Make these exactly the aggregates of a provider, ignoring its generation and leaving it as it is."""
    store.replace_aggregates(tx, locked_provider(tx, uuid).id, aggregates)


@writes
def replace_aggregates_at(tx: Transaction, uuid: str, aggregates: Collection[str], *, generation: int) -> int:
    """Make these exactly the aggregates of a provider at this generation; return its new generation."""
    provider = locked_provider_at(tx, uuid, expected=generation)
    store.replace_aggregates(tx, provider.id, aggregates)
    advance_generation(tx, provider.id, expected=generation)
    return generation + 1
