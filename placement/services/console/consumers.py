"""Search for consumers; show one consumer with what it holds."""

from collections.abc import Mapping
from dataclasses import dataclass

from placement.domain.names import UNTYPED
from placement.services.console.lists import Excerpt, part_of
from placement.store.connection.unit_of_work import Transaction, reads_anywhere
from placement.store.console import consumers as store
from placement.store.console.consumers import HeldAmount, ListedConsumer


@dataclass(frozen=True, slots=True)
class ConsumerSearch:
    """The search terms; empty means any.

    Args:
        uuid: the beginning of the uuid.
        project: the beginning of the project's id.
        type: the type, or UNTYPED.
    """

    uuid: str = ""
    project: str = ""
    type: str = ""


@dataclass(frozen=True, slots=True)
class FoundConsumers:
    """A page of the consumers found, what they hold by uuid and class, and all consumer types."""

    part: Excerpt[ListedConsumer]
    held: Mapping[str, Mapping[str, int]]
    types: list[str]


@dataclass(frozen=True, slots=True)
class ConsumerWithHoldings:
    """A consumer, the sums of what it holds by class, and a page of its allocations."""

    consumer: ListedConsumer
    sums: Mapping[str, int]
    held: Excerpt[HeldAmount]


@reads_anywhere
def found_consumers(tx: Transaction, search: ConsumerSearch, *, first: int, most: int) -> FoundConsumers:
    """Return a page of the consumers that a search finds, newest first."""
    conditions = []
    if search.uuid:
        conditions.append(store.begins_with(search.uuid))
    if search.project:
        conditions.append(store.of_project(search.project))
    if search.type:
        conditions.append(store.of_type(None if search.type == UNTYPED else search.type))
    rows = store.listed_consumers(tx, conditions, first=first, most=most + 1)
    total = store.consumer_count(tx, conditions)
    part = part_of(rows, most=most, total=total)
    return FoundConsumers(part, store.sums_of(tx, {row.uuid for row in part.rows}), store.type_names(tx))


@reads_anywhere
def consumer_with_holdings(tx: Transaction, uuid: str, *, first: int, most: int) -> ConsumerWithHoldings | None:
    """Return a consumer with a page of its allocations; None if it holds nothing."""
    found = store.consumer(tx, uuid)
    if found is None:
        return None
    rows = store.held_by(tx, uuid, first=first, most=most + 1)
    sums = store.sums_of(tx, {uuid}).get(uuid, {})
    return ConsumerWithHoldings(found, sums, Excerpt(rows[:most], len(rows) > most, None))
