"""What a search asks by id: names of a request first, names and summaries of the providers in its answer last.

With the ids of a request's names come the few facts that steer its search. Summaries are the inventory, usage and
traits of the providers of some trees.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any, NamedTuple

import os_traits
from sqlalchemy import BindParameter, Integer, ScalarSelect, bindparam, func, select

from placement.domain.quantities import whole_capacity
from placement.domain.search_plan import NamedIds, Plan
from placement.domain.tree import PlaceLock
from placement.errors import Invalid
from placement.store.connection.database import Transaction
from placement.store.connection.statements import PreparedScalars, PreparedStatement, RowsByIds, Values
from placement.store.names import UsedLocks, lock_columns, lock_values, used_locks
from placement.store.search.cloud_rows import HAS_ROOT
from placement.store.stock import StockSource
from placement.store.tables import (
    inventories,
    placement_aggregates,
    resource_provider_aggregates,
    resource_provider_traits,
    resource_providers,
    traits,
)

_RP = resource_providers.c
_IN = resource_provider_aggregates.c


_AGGREGATES = PreparedStatement(
    select(placement_aggregates.c.uuid, placement_aggregates.c.id).where(
        placement_aggregates.c.uuid.in_(bindparam("uuids", expanding=True))
    )
)
_ROOTS = PreparedStatement(
    select(_RP.uuid, _RP.root_provider_id).where(_RP.uuid.in_(bindparam("uuids", expanding=True)), HAS_ROOT)
)
_IN_USE = resource_provider_traits.c.trait_id


def _next_in_use(trait: Any) -> ScalarSelect[int]:
    """Return the lowest id of a trait in use from this one on: itself, if any provider has it.

    Only the primary key, which begins with the trait, has this order, so that PostgreSQL looks it up there. Asked for a
    provider with the trait, it may expect to find one soon in any order, and in vain read all rows or a whole index.
    MariaDB would read the whole index for a minimum, unless the trait were a constant.
    """
    return select(_IN_USE).where(trait <= _IN_USE).order_by(_IN_USE).limit(1).scalar_subquery()


_SHARING_TRAIT: BindParameter[int] = bindparam("sharing_trait", type_=Integer)
_SHARES = _next_in_use(_SHARING_TRAIT) == _SHARING_TRAIT


ReadAlong = Callable[[Transaction, PreparedScalars, Values], Sequence[Any] | None]
"""Reads scalars in a snapshot along with something else; returns None if they must be read alone."""


@lru_cache(maxsize=16)
def _facts(levels: int, locks: int) -> PreparedScalars:
    """Return what asks whether any provider shares, and for the level traits and lock classes in use."""
    in_use = [
        select(traits.c.id)
        .where(traits.c.name == bindparam(f"level_{level}"), traits.c.id == _next_in_use(traits.c.id))
        .scalar_subquery()
        for level in range(levels)
    ]
    return PreparedScalars(_SHARES, *in_use, *lock_columns(locks))


def ids_for(
    tx: Transaction,
    plan: Plan,
    levels: Sequence[str] = (),
    *,
    locks: Sequence[PlaceLock] = (),
    read_along: ReadAlong | None = None,
) -> NamedIds:
    """Look up all names of a plan, and which of the traits ``levels`` and of the locks are in use.

    Invalid if a resource class or trait does not exist; unknown aggregates and providers are just empty. ``read_along``
    may spare a statement.
    """
    groups = plan.request.groups
    aggregates = [uuids for group in groups for uuids in (*group.member_of, group.forbidden_aggregates)]
    classes, trait_ids = _known_names(tx, plan)
    values: dict[str, object] = {f"level_{index}": name for index, name in enumerate(levels)}
    sharing_trait = trait_ids.get(os_traits.MISC_SHARES_VIA_AGGREGATE, -1)
    values |= {**lock_values(locks), "sharing_trait": sharing_trait}
    facts = _facts(len(levels), len(locks))
    read = read_along(tx, facts, values) if read_along else None
    shares, *in_use = facts.read(tx.connection, values) if read is None else read
    return NamedIds(
        classes=classes,
        traits=trait_ids,
        aggregates=_by_uuid(tx, _AGGREGATES, {uuid for uuids in aggregates for uuid in uuids}),
        roots=roots_of_providers(tx, {group.in_tree for group in groups if group.in_tree}),
        shares=bool(shares),
        levels=tuple(in_use[: len(levels)]),
        locks=_locks(tx, used_locks(locks, in_use[len(levels) :])),
    )


def _locks(tx: Transaction, used: UsedLocks) -> dict[int, int | None]:
    """Return by lock class the id of the trait of its level; a level whose trait does not exist has no place."""
    ids = tx.names.traits.ids(tx.connection, {trait for trait in used.values() if trait is not None}) if used else {}
    in_use = {class_id: trait for class_id, trait in used.items() if trait is None or trait in ids}
    return {class_id: None if trait is None else ids[trait] for class_id, trait in in_use.items()}


def _known_names(tx: Transaction, plan: Plan) -> tuple[dict[str, int], dict[str, int]]:
    """Return the ids of the classes and traits in a request, with the trait that marks sharing; Invalid for unknown."""
    class_names, trait_names = {name for group in plan.request.groups for name in group.resources}, plan.trait_names
    classes = tx.names.classes.ids(tx.connection, class_names)
    if unknown := sorted(class_names - classes.keys()):
        raise Invalid(f"Invalid resource class in resources parameter: No such resource class {unknown[0]}.")
    trait_ids = tx.names.traits.ids(tx.connection, trait_names | {os_traits.MISC_SHARES_VIA_AGGREGATE})
    if missing := sorted(trait_names - trait_ids.keys()):
        raise Invalid(f"No such trait(s): {', '.join(missing)}.")
    return classes, trait_ids


def _by_uuid(tx: Transaction, statement: PreparedStatement, uuids: Iterable[str]) -> dict[str, int]:
    in_order = sorted(uuids)
    return dict(tx.tuples(statement, {"uuids": in_order})) if in_order else {}


class Named(NamedTuple):
    """A provider with its uuids and name, as shown to people."""

    id: int
    uuid: str
    name: str
    root_uuid: str


def named_providers(tx: Transaction, ids: Iterable[int]) -> dict[int, Named]:
    """Return the names of some providers."""
    in_order = sorted(set(ids))
    return {row[0]: Named(*row) for row in tx.tuples(_NAMED, {"ids": in_order})} if in_order else {}


def parents_in(tx: Transaction, roots: Collection[int]) -> dict[int, int | None]:
    """Return the parent of each provider of some trees, None for roots; others may be included."""
    return dict(_PARENTS.read(tx, roots))


def names_in(tx: Transaction, roots: Collection[int]) -> dict[int, dict[int, tuple[str, str | None]]]:
    """Return the uuid and the name, if it has one, of each provider of some trees, by root; others may be included."""
    names: dict[int, dict[int, tuple[str, str | None]]] = defaultdict(dict)
    for root, id_, uuid, name in _NAMES.read(tx, roots):
        names[root][id_] = uuid, name
    return names


_PARENTS = RowsByIds(select(_RP.id, _RP.parent_provider_id), _RP.root_provider_id, spread=math.inf)
_NAMES = RowsByIds(select(_RP.root_provider_id, _RP.id, _RP.uuid, _RP.name), _RP.root_provider_id, spread=math.inf)


_ROOT = resource_providers.alias("root")
_NAMED = PreparedStatement(
    select(
        resource_providers.c.id,
        resource_providers.c.uuid,
        func.coalesce(resource_providers.c.name, resource_providers.c.uuid),
        func.coalesce(_ROOT.c.uuid, resource_providers.c.uuid),
    )
    .outerjoin(_ROOT, _ROOT.c.id == _RP.root_provider_id)
    .where(_RP.id.in_(bindparam("ids", expanding=True)))
)


def roots_of_providers(tx: Transaction, uuids: Collection[str]) -> dict[str, int]:
    """Return the root of the tree of each provider that exists."""
    return _by_uuid(tx, _ROOTS, uuids)


MAX_BETWEEN = 4
"""Providers are read as a range if it spans at most this many ids for each; otherwise they are too scattered."""


class TreeMember(NamedTuple):
    """A provider of a tree."""

    id: int
    uuid: str
    root_id: int
    parent_id: int | None


class StockRow(NamedTuple):
    """A provider's inventory and usage of a resource class."""

    class_id: int
    total: int
    reserved: int
    allocation_ratio: float
    used: int

    @property
    def capacity(self) -> int:
        """The amount that may be allocated in total."""
        return whole_capacity(self.total, self.reserved, self.allocation_ratio)


@dataclass(slots=True)
class Summaries:
    """The providers of some trees, in columns: an answer may have many thousands of them.

    ``stocks`` and ``traits`` (ids, ascending) are by provider id; stocks are plain tuples in the shape of StockRow.
    """

    members: dict[int, TreeMember] = field(default_factory=dict)
    stocks: Mapping[int, list[StockRow]] = field(default_factory=dict)
    traits: Mapping[int, list[int]] = field(default_factory=dict)
    class_names: Mapping[int, str] = field(default_factory=dict)
    trait_names: Mapping[int, str] = field(default_factory=dict)


def tree_summaries(tx: Transaction, roots: Collection[int], members: dict[int, TreeMember] | None = None) -> Summaries:
    """Return the summaries of all providers of the trees with these roots; ``members`` if these are known already."""
    if not roots:
        return Summaries()
    if members is None:
        members = _members_in(tx, roots)
    pairs = _TRAITS.read(tx, members)
    members = _with_links(tx, members)
    stocks: dict[int, list[StockRow]] = defaultdict(list)
    for row in _stocks(keeps_usage=tx.database.keeps_usage).read(tx, members):
        stocks[row[0]].append(row[1:])
    traits: dict[int, list[int]] = defaultdict(list)
    for provider, trait in pairs:
        traits[provider].append(trait)
    for of_provider in traits.values():
        if len(of_provider) > 1:
            of_provider.sort()
    return Summaries(
        members,
        stocks,
        traits,
        tx.names.classes.names(tx.connection, {row[0] for rows in stocks.values() for row in rows}),
        tx.names.traits.names(tx.connection, {trait for _provider, trait in pairs}),
    )


def _with_links(tx: Transaction, members: dict[int, TreeMember]) -> dict[int, TreeMember]:
    """Add the parents and roots that have no root themselves, and so are in no tree: usually none."""
    links = {link: member[2] for member in members.values() for link in member[2:] if link not in members}
    tree_of = {link: root for link, root in links.items() if link is not None}
    rows = _BY_ID.read(tx, tree_of)
    added = {id_: TreeMember(id_, uuid, tree_of[id_], parent) for id_, uuid, parent in rows}
    return _with_links(tx, {**members, **added}) if added else members


def _members_in(tx: Transaction, roots: Collection[int]) -> dict[int, TreeMember]:
    # The same as TreeMember._make, but without a Python call for each of many thousands.
    members, root_ids = map(partial(tuple.__new__, TreeMember), _TREE_MEMBERS.read(tx, roots)), frozenset(roots)
    return {member[0]: member for member in members if member[2] in root_ids}


_INV = inventories.c
_HAS = resource_provider_traits.c

_BY_ID = RowsByIds(select(_RP.id, _RP.uuid, _RP.parent_provider_id), _RP.id, spread=MAX_BETWEEN)
_TREE_MEMBERS = RowsByIds(
    select(_RP.id, _RP.uuid, _RP.root_provider_id, _RP.parent_provider_id), _RP.root_provider_id, spread=math.inf
)
_TRAITS = RowsByIds(select(_HAS.resource_provider_id, _HAS.trait_id), _HAS.resource_provider_id, spread=MAX_BETWEEN)


@lru_cache(maxsize=2)
def _stocks(*, keeps_usage: bool) -> RowsByIds:
    stock = StockSource(keeps_usage=keeps_usage)
    amounts = (_INV.total, _INV.reserved, _INV.allocation_ratio, stock.used)
    columns = select(_INV.resource_provider_id, _INV.resource_class_id, *amounts).select_from(stock.rows)
    return RowsByIds(columns, _INV.resource_provider_id, spread=MAX_BETWEEN)
