"""Search for consumers; show one consumer or project with what it holds. Pages of lists are excerpts."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from placement.domain.names import UNTYPED
from placement.store.connection.unit_of_work import Transaction, reads_anywhere
from placement.store.console import consumers as store
from placement.store.console.consumers import HeldAmount, ListedConsumer, ProjectHost

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Excerpt(Generic[Row]):
    """Some rows of a list; ``total`` is None if there are too many to count."""

    rows: list[Row]
    has_more: bool
    total: int | None


def part_of(rows: list[Row], *, most: int, total: int | None) -> Excerpt[Row]:
    """Return a page, given one row more than it shows."""
    return Excerpt(rows[:most], len(rows) > most, total)


@dataclass(frozen=True, slots=True)
class ConsumerSearch:
    """The search terms; empty means any.

    Args:
        uuid: the beginning of the uuid.
        project: the beginning of the project's id.
        projects: the ids of projects that are wanted as well, because of their names.
        type: the type, or UNTYPED.
    """

    uuid: str = ""
    project: str = ""
    type: str = ""
    projects: tuple[str, ...] = ()


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
        conditions.append(store.of_project(search.project, search.projects))
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


@dataclass(frozen=True, slots=True)
class ProjectStanding:
    """What a project holds of each class, its consumers by type, and a page of the trees they are on."""

    sums: Mapping[str, int]
    consumers: Mapping[str, int]
    hosts: Excerpt[ProjectHost]


@reads_anywhere
def project_standing(tx: Transaction, project: str, *, with_hosts: bool, first: int, most: int) -> ProjectStanding:
    """Return what a project holds, which may be nothing. Not everybody who may see sums may see hosts."""
    hosts = store.hosts_of_project(tx, project, first=first, most=most + 1) if with_hosts else []
    types = {name or UNTYPED: count for name, count in store.consumers_by_type(tx, project).items()}
    return ProjectStanding(store.held_by_project(tx, project), types, Excerpt(hosts[:most], len(hosts) > most, None))
