"""Search for providers, page by page."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from placement.domain.provider import ProviderFilter
from placement.errors import Invalid
from placement.services.console.consumers import Excerpt, part_of
from placement.services.providers import ids_in_filter
from placement.store.connection.unit_of_work import Transaction, reads_anywhere
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
