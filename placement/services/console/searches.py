"""Search for providers and consumers, page by page; show a consumer or project with what it holds."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from placement.cloud.providers import Flags, Ints
from placement.domain.inventory import ProviderFilter
from placement.domain.names import UNTYPED
from placement.errors import Invalid
from placement.services.console.hosts import Hosts, KindOfTrees
from placement.services.providers import ids_in_filter
from placement.store.connection.database import Transaction, reads_anywhere
from placement.store.console import consumers as store
from placement.store.console import providers as listed
from placement.store.console.consumers import HeldAmount, HeldByConsumer, ListedConsumer
from placement.store.console.providers import ConsoleProvider, ListOrder, has_changed, has_word
from placement.store.console.stocks import ClassTotals, stocks_of_providers, stocks_of_trees
from placement.store.provider_list import conditions_of
from placement.store.search.names import named_providers

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Excerpt(Generic[Row]):
    """Some rows of a list; ``total`` is None if there are too many to count."""

    rows: list[Row]
    has_more: bool
    total: int | None


def part_of(rows: list[Row], *, limit: int, total: int | None = None) -> Excerpt[Row]:
    """Return a page, given one row more than it shows."""
    return Excerpt(rows[:limit], len(rows) > limit, total)


@dataclass(frozen=True, slots=True)
class ConsumerSearch:
    """The search terms, empty for any: the beginning of a uuid, that of a project's id or further ids, and a type."""

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
def found_consumers(tx: Transaction, search: ConsumerSearch, *, first: int, limit: int) -> FoundConsumers:
    """Return a page of the consumers that a search finds, newest first."""
    conditions = []
    if search.uuid:
        conditions.append(store.begins_with(search.uuid))
    if search.project:
        conditions.append(store.of_project(search.project, search.projects))
    if search.type:
        conditions.append(store.of_type(None if search.type == UNTYPED else search.type))
    rows = store.listed_consumers(tx, conditions, first=first, limit=limit + 1)
    total = store.consumer_count(tx, conditions)
    part = part_of(rows, limit=limit, total=total)
    return FoundConsumers(part, store.sums_of(tx, {row.uuid for row in part.rows}), store.type_names(tx))


@reads_anywhere
def consumer_with_holdings(tx: Transaction, uuid: str, *, first: int, limit: int) -> ConsumerWithHoldings | None:
    """Return a consumer with a page of its allocations; None if it holds nothing."""
    consumer = store.consumer(tx, uuid)
    if consumer is None:
        return None
    rows = store.held_by(tx, uuid, first=first, limit=limit + 1)
    return ConsumerWithHoldings(consumer, store.sums_of(tx, {uuid}).get(uuid, {}), part_of(rows, limit=limit))


class ProjectHost(NamedTuple):
    """A tree that a project uses: the number of its consumers there, and the amounts by class."""

    uuid: str
    name: str
    consumers: int
    held: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class ProjectStanding:
    """What a project holds of each class, its consumers by type, and a page of the trees they are on.

    ``count`` is None if there are too many consumers to count. If ``is_part``, only the first are added up.
    """

    count: int | None
    is_part: bool
    sums: Mapping[str, int]
    types: Mapping[str, int]
    hosts: Excerpt[ProjectHost]


@reads_anywhere
def project_standing(tx: Transaction, project: str, *, with_hosts: bool, first: int, limit: int) -> ProjectStanding:
    """Return what a project holds, which may be nothing. Not everybody who may see sums may see hosts."""
    rows, count = store.held_by_project(tx, project), store.consumers_of_project(tx, project)
    names = tx.names.classes.names(tx.connection, {row.class_id for row in rows if row.class_id is not None})
    sums = _sums(rows, names)
    types = Counter({row.consumer_id: row.type or UNTYPED for row in rows}.values())
    hosts = _project_hosts(tx, rows, names, first=first, limit=limit + 1) if with_hosts else []
    is_part = count is None or count > store.MAX_SUMMED
    return ProjectStanding(count, is_part, sums, dict(sorted(types.items())), part_of(hosts, limit=limit))


def _sums(rows: Iterable[HeldByConsumer], names: Mapping[int, str]) -> dict[str, int]:
    sums: Counter[int] = Counter()
    for _consumer, _type, _provider, class_id, used in rows:
        if class_id is not None:
            sums[class_id] += used or 0
    return {names[class_id]: used for class_id, used in sorted(sums.items())}


def _project_hosts(
    tx: Transaction, rows: Sequence[HeldByConsumer], names: Mapping[int, str], *, first: int, limit: int
) -> list[ProjectHost]:
    """Return a page of the trees that consumers are on, those with most of them first."""
    root_of = Hosts(tx).columns.providers.root_of({row.provider_id for row in rows if row.provider_id is not None})
    in_trees: dict[int, list[HeldByConsumer]] = defaultdict(list)
    for row in rows:
        if row.provider_id in root_of:
            in_trees[root_of[row.provider_id]].append(row)
    counts = {root: len({row.consumer_id for row in held}) for root, held in in_trees.items()}
    page = sorted(counts, key=lambda root: (-counts[root], root))[first : first + limit]
    named = named_providers(tx, page)
    return [
        ProjectHost(named[root].uuid, named[root].name, counts[root], _sums(in_trees[root], names)) for root in page
    ]


EVERY = ProviderFilter()
KINDS = 20
NO_TREES: Ints = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderSearch:
    """The search terms; by default nothing is asked for.

    Each of ``words`` has to be part of the name; a single one may begin a uuid. ``trees`` finds trees, by what each has
    in total. ``kind`` are exactly the tree's classes, ``groups`` the aggregates of each group it is in, ``changed_h``
    the most hours since the last change.
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
    """A page of the providers found, with the stocks of the whole tree for a root, otherwise the provider's own."""

    part: Excerpt[ConsoleProvider]
    stocks: Mapping[int, list[ClassTotals]]
    kinds: Sequence[KindOfTrees]
    disabled: AbstractSet[int]


@reads_anywhere
def found_providers(tx: Transaction, search: ProviderSearch, *, first: int, limit: int) -> FoundProviders:
    """Return a page of the providers that a search finds, roots first; Invalid for an unknown class or trait."""
    hosts = Hosts(tx)
    ids = _ids_in_order(tx, hosts, search)
    rows = listed.listed_providers(tx, ids[first : first + limit].tolist())
    part = Excerpt(rows, len(ids) > first + limit, len(ids) if len(ids) < listed.MAX_LISTED or search.trees else None)
    roots = {row.id for row in rows if row.is_root}
    stocks = {**stocks_of_trees(tx, roots), **stocks_of_providers(tx, {row.id for row in rows} - roots)}
    return FoundProviders(part, stocks, hosts.kinds[:KINDS], hosts.root_ids(hosts.disabled))


def _ids_in_order(tx: Transaction, hosts: Hosts, search: ProviderSearch) -> Ints:
    """Return the ids of all trees or providers that a search finds: conditions are met in SQL, the rest in columns."""
    classes, traits = ids_in_filter(tx, search.filter)
    amounts = {classes[name]: amount for name, amount in search.filter.resources.items()} if search.trees else {}
    of_each = replace(search.filter, resources={}) if search.trees else search.filter
    conditions = [*conditions_of(tx, of_each, class_ids=classes, trait_ids=traits), *map(has_word, search.words)]
    if search.changed_h is not None:
        since = datetime.now(UTC).replace(tzinfo=None) - timedelta(hours=search.changed_h)
        conditions.append(has_changed(since, by_journal=search.by_journal))
    is_wanted = _trees_wanted(tx, hosts, search) & hosts.with_free(amounts)
    if search.trees:
        if conditions:
            is_wanted &= hosts.flags(hosts.trees_of(listed.roots_with(tx, conditions)))
        trees = hosts.order
        if search.order in listed.BY_CHANGE:
            roots = [id_ for id_, _root in listed.ids_in_order(tx, [listed.IS_ROOT], search.order)]
            trees = hosts.columns.providers.tree_indices(roots)
        ids = hosts.roots[trees]
    else:
        rows = np.array(listed.ids_in_order(tx, conditions, search.order), dtype=np.int64).reshape(-1, 2)
        ids, trees = rows[:, 0], hosts.columns.providers.tree_indices(rows[:, 1])
    is_kept = is_wanted[trees] & (trees >= 0)
    ids, loads = ids[is_kept], np.maximum(0.0, hosts.loads[trees[is_kept]])
    if search.order in (ListOrder.FULLEST, ListOrder.EMPTIEST):
        return ids[np.argsort(-loads if search.order is ListOrder.FULLEST else loads, kind="stable")]
    return ids


def _trees_wanted(tx: Transaction, hosts: Hosts, search: ProviderSearch) -> Flags:
    is_wanted = np.ones(len(hosts.roots), dtype=bool)
    if search.kind:
        for name in search.kind:
            if name not in tx.names.classes.ids(tx.connection, search.kind):
                raise Invalid(f"Invalid kind: No such resource class {name}.")
        of_kind = [kind.trees for kind in hosts.kinds if {*kind.classes} == {*search.kind}]
        is_wanted = hosts.flags(np.concatenate([*of_kind, NO_TREES]))
    if search.disabled is not None:
        is_wanted &= hosts.disabled == search.disabled
    if search.full is not None:
        is_wanted &= (hosts.loads >= 1) == search.full
    for aggregates in search.groups:
        members = hosts.in_groups(aggregates)
        is_wanted &= hosts.flags(hosts.trees_of({root for roots in members.values() for root in roots}))
    return is_wanted
