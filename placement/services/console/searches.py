"""Search for providers and consumers, page by page; show a consumer or project with what it holds."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Generic, TypeVar

from placement.domain.names import UNTYPED
from placement.domain.provider import ProviderFilter
from placement.errors import Invalid
from placement.services.providers import ids_in_filter
from placement.store.connection.unit_of_work import Transaction, reads_anywhere
from placement.store.console import consumers as store
from placement.store.console.consumers import HeldAmount, ListedConsumer, ProjectHost
from placement.store.console.providers import ConsoleProvider, Facets, Listed, ListOrder
from placement.store.console.stocks import (
    ClassTotals,
    KindCount,
    disabled_hosts,
    kind_counts,
    stocks_of_providers,
    stocks_of_trees,
)
from placement.store.provider_list import conditions_of

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


EVERY = ProviderFilter()
KINDS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderSearch:
    """The search terms; by default nothing is asked for.

    Args:
        words: each has to be part of the name; a single one may be the beginning of a uuid.
        filter: the API's filter.
        trees: whether to find trees, by what each has in total, rather than providers by what each has itself.
        kind: exactly the resource classes of the tree.
        disabled: whether nova has disabled the host.
        full: whether the most loaded class is used up.
        groups: for each group that the tree has to be in, its aggregates.
        changed_h: the most hours since the last change.
        by_journal: whether changes recorded only in the journal count as well.
        order: the order of the list.
    """

    words: tuple[str, ...] = ()
    filter: ProviderFilter = EVERY
    trees: bool = True
    kind: tuple[str, ...] = ()
    disabled: bool | None = None
    full: bool | None = None
    groups: tuple[tuple[str, ...], ...] = ()
    changed_h: int | None = None
    by_journal: bool = False
    order: ListOrder = ListOrder.NAME


@dataclass(frozen=True, slots=True)
class FoundProviders:
    """A page of the providers found.

    Args:
        part: the page.
        stocks: stocks by id: of the whole tree for a root, otherwise the provider's own.
        kinds: all kinds of trees, the most numerous first.
        disabled: the roots of all trees whose host is disabled.
    """

    part: Excerpt[ConsoleProvider]
    stocks: Mapping[int, list[ClassTotals]]
    kinds: list[KindCount]
    disabled: AbstractSet[int]


@reads_anywhere
def found_providers(tx: Transaction, search: ProviderSearch, *, first: int, most: int) -> FoundProviders:
    """Return a page of the providers that a search finds, roots first.

    Raises:
        Invalid: the search names a resource class or trait that does not exist.
    """
    classes, traits = ids_in_filter(tx, search.filter)
    facets = Facets(
        words=search.words,
        room={classes[name]: amount for name, amount in search.filter.resources.items()} if search.trees else {},
        kind=_class_ids(tx, search.kind),
        disabled=search.disabled,
        full=search.full,
        groups=search.groups,
        by_journal=search.by_journal,
        changed_since=None if search.changed_h is None else _hours_ago(search.changed_h),
    )
    asked = replace(search.filter, resources={}) if search.trees else search.filter
    of_each = conditions_of(tx, asked, class_ids=classes, trait_ids=traits)
    listed = Listed(tx, of_each, facets, trees=search.trees)
    rows = listed.rows(search.order, first=first, most=most + 1)
    part = part_of(rows, most=most, total=listed.count())
    roots = {row.id for row in part.rows if row.is_root}
    others = {row.id for row in part.rows} - roots
    stocks = {**stocks_of_trees(tx, roots), **stocks_of_providers(tx, others)}
    return FoundProviders(part, stocks, kind_counts(tx, limit=KINDS), disabled_hosts(tx))


def _hours_ago(hours: int) -> datetime:
    """Return a time as stored in the database: naive UTC."""
    return datetime.now(UTC).replace(tzinfo=None) - timedelta(hours=hours)


def _class_ids(tx: Transaction, names: tuple[str, ...]) -> list[int]:
    ids = tx.names.classes.ids(tx.connection, names)
    for name in names:
        if name not in ids:
            raise Invalid(f"Invalid kind: No such resource class {name}.")
    return sorted(ids.values())
