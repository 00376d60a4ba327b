"""Lists of resource providers, in one statement whatever the filter."""

from collections.abc import Iterator, Mapping, Set
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import BigInteger, ColumnElement, Select, and_, case, func, intersect, literal, select

from placement.domain.inventory import UNBOUNDED, ProviderFilter
from placement.store.connection.database import Transaction
from placement.store.providers import CHANGED_AT, PARENT, ROOT, RP, WITH_PARENTS
from placement.store.stock import StockSource
from placement.store.tables import (
    placement_aggregates,
    resource_provider_aggregates,
    resource_provider_traits,
    resource_providers,
)

MAX_SETS_KEPT = 10
"""A statement is as long as its filter, and takes a hundred times its text in memory: longer ones are not kept."""

ProviderRow = tuple[str, str, int, str | None, str]
"""uuid, name, generation, uuid of the parent, uuid of the root."""

_ALL = (
    select(RP.uuid, RP.name, RP.generation, PARENT.c.uuid, ROOT.c.uuid, CHANGED_AT)
    .select_from(WITH_PARENTS)
    .order_by(RP.id)
)
_OWNER, _TRAIT = resource_provider_traits.c.resource_provider_id, resource_provider_traits.c.trait_id
_MEMBER = resource_provider_aggregates.c.resource_provider_id
_MEMBERS = select(_MEMBER).join(
    placement_aggregates, placement_aggregates.c.id == resource_provider_aggregates.c.aggregate_id
)


class ProviderList(NamedTuple):
    """Providers, and the time of the newest change to any of them (naive UTC)."""

    rows: list[ProviderRow]
    modified: datetime | None


def providers_matching(
    tx: Transaction, provider_filter: ProviderFilter, *, class_ids: Mapping[str, int], trait_ids: Mapping[str, int]
) -> ProviderList:
    """Return the providers that pass a filter, in the order of their ids. The caller resolves its names to ids."""
    query = _ALL.where(*conditions_of(tx, provider_filter, class_ids=class_ids, trait_ids=trait_ids))
    if len(provider_filter.required) + len(provider_filter.member_of) + len(provider_filter.resources) > MAX_SETS_KEPT:
        tx.keep_no_statement()
    # The driver's raw rows: for thousands of providers, building objects would cost more than the query.
    rows = tx.tuples(query)
    newest = max((row[5] for row in rows if row[5] is not None), default=None)
    # The driver's timestamps are texts on SQLite.
    modified = datetime.fromisoformat(newest) if isinstance(newest, str) else newest
    return ProviderList([row[:5] for row in rows], modified)


def conditions_of(
    tx: Transaction, provider_filter: ProviderFilter, *, class_ids: Mapping[str, int], trait_ids: Mapping[str, int]
) -> list[ColumnElement[bool]]:
    """Translate a filter into conditions on rows of resource_providers."""
    # Like the reference, which finds an aggregate only by the spelling that it was created with.
    uuid = placement_aggregates.c.uuid
    aggregate: ColumnElement[str] = func.binary(uuid) if tx.dialect == "mysql" else uuid
    conditions = [*_of_identity(provider_filter)]
    passing: list[Select[int]] = []
    if provider_filter.required:
        id_sets = {frozenset(trait_ids[name] for name in names) for names in provider_filter.required}
        passing.append(_having_one_of_each(select(_OWNER), _OWNER, key=_TRAIT, sets=id_sets))
    if provider_filter.forbidden:
        forbidden_ids = sorted(trait_ids[name] for name in provider_filter.forbidden)
        conditions.append(RP.id.not_in(select(_OWNER).where(_TRAIT.in_(forbidden_ids))))
    if provider_filter.member_of:
        passing.append(_having_one_of_each(_MEMBERS, _MEMBER, key=aggregate, sets=set(provider_filter.member_of)))
    if provider_filter.forbidden_aggregates:
        conditions.append(RP.id.not_in(_MEMBERS.where(aggregate.in_(sorted(provider_filter.forbidden_aggregates)))))
    if provider_filter.resources:
        passing.append(_having_room(tx, provider_filter.resources, class_ids))
    if passing:
        # Intersected into one set of ids: each set of its own would be another join, and PostgreSQL, which
        # underestimates such sets, would compare every provider of one with every provider of the next.
        conditions.append(RP.id.in_(intersect(*passing) if len(passing) > 1 else passing[0]))
    return conditions


def _of_identity(provider_filter: ProviderFilter) -> Iterator[ColumnElement[bool]]:
    if provider_filter.name is not None:
        yield RP.name == provider_filter.name
    if provider_filter.uuid is not None:
        yield RP.uuid == provider_filter.uuid
    if provider_filter.in_tree is not None:
        named = resource_providers.alias("named")
        yield RP.root_provider_id == (
            select(named.c.root_provider_id).where(named.c.uuid == provider_filter.in_tree).scalar_subquery()
        )


def _having_one_of_each(
    query: Select[int], provider: ColumnElement[int], *, key: ColumnElement[Any], sets: Set[frozenset[Any]]
) -> Select[int]:
    """Narrow a query over (provider, key) links to providers that have at least one key of each set.

    A subquery per set would be a join per set: with a hundred of them PostgreSQL plans for minutes.
    """
    query = query.where(key.in_(sorted(frozenset[Any]().union(*sets))))
    single = sorted(only for keys in sets if len(keys) == 1 for only in keys)
    counts = [func.count(case((key.in_(sorted(keys)), 1))) >= 1 for keys in sets if len(keys) > 1]
    if single:
        counts.append(func.count(case((key.in_(single), 1))) == len(single))
    # With a single set, any link is enough.
    return query.group_by(provider).having(and_(*counts)) if len(sets) > 1 else query


def _having_room(tx: Transaction, amounts: Mapping[str, int], ids: Mapping[str, int]) -> Select[int]:
    """Return a query for providers that can serve all amounts alone: ``domain.inventory.Inventory.fits`` in SQL."""
    stock = StockSource(keeps_usage=tx.database.keeps_usage)
    have = stock.inventory.c
    amount_by_class = case(
        # max_unit never exceeds UNBOUNDED, so larger amounts are equivalent; the clamp keeps sums within BIGINT.
        {ids[name]: literal(min(amount, UNBOUNDED + 1), BigInteger) for name, amount in amounts.items()},
        value=have.resource_class_id,
    )
    fitting = select(have.resource_provider_id).select_from(stock.rows)
    fitting = fitting.where(have.resource_class_id.in_(sorted(ids.values())), stock.fits(amount_by_class))
    return fitting.group_by(have.resource_provider_id).having(func.count() == len(ids))
