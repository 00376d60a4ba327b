"""Conjunctions of any-of sets of traits or aggregates as SQL: providers, or trees, that have a member of each set.

The statement depends only on the shape of the conjunction. Ids are written into its text when it is sent: a query
planner that sees them knows how many providers have them, and a rare trait deserves a different plan.

Where ``few`` providers are asked about, say those of some trees, the links of each are looked up. Otherwise all links
of these traits or aggregates are read first, which pays only if most providers are asked about.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from sqlalchemy import BigInteger, ColumnElement, Integer, Select, and_, bindparam, case, distinct, func, select

from placement.store.tables import resource_provider_aggregates, resource_provider_traits, resource_providers

SqlCondition = ColumnElement[bool]
Links = Select[tuple[int]]

_HAS = resource_provider_traits.c
_IN = resource_provider_aggregates.c


class SetsShape(NamedTuple):
    """How many sets have several members, and how many have one: 0, 1, or 2 for more."""

    several: int
    singles: int


NO_SETS = SetsShape(0, 0)


def sets_shape(sets: Collection[frozenset[str]]) -> SetsShape:
    """Return the shape of a conjunction."""
    several = sum(1 for any_of in sets if len(any_of) > 1)
    return SetsShape(several, min(len(sets) - several, 2))


def sets_parameters(name: str, sets: Collection[frozenset[str]], ids: Mapping[str, int]) -> dict[str, Any]:
    """Return the values bound by the conditions on a conjunction of this name; unknown members are dropped."""
    singles = {only for any_of in sets if len(any_of) == 1 for only in any_of}
    several = [any_of for any_of in sets if len(any_of) > 1]
    values: dict[str, Any] = {f"{name}_{index}": known(any_of, ids) for index, any_of in enumerate(several)}
    values[f"{name}_any"] = known(frozenset[str]().union(*sets), ids)
    values[f"{name}_singles"] = known(singles, ids)
    values[f"{name}_count"] = len(singles)
    return values


def known(names: Iterable[str], ids: Mapping[str, int]) -> list[int]:
    """Return the ids of the known names, ascending."""
    return sorted(ids[name] for name in names if name in ids)


def has_trait(provider_id: Any, name: str, *, few: bool = False) -> SqlCondition:
    """Return the condition that a provider has any of the traits bound as ``name``."""
    return _among(provider_id, select(_HAS.resource_provider_id).where(_HAS.trait_id.in_(_ids(name))), few=few)


def is_member(provider_id: Any, name: str, *, few: bool = False) -> SqlCondition:
    """Return the condition that a provider is in any of the aggregates bound as ``name``."""
    return _among(provider_id, select(_IN.resource_provider_id).where(_IN.aggregate_id.in_(_ids(name))), few=few)


def has_one_of_each(provider_id: Any, sets: SetsShape, name: str, *, few: bool = False) -> SqlCondition:
    """Return the condition that a provider has a trait of each set."""
    owners = select(_HAS.resource_provider_id)
    return _among(provider_id, _with_each(owners, _HAS.trait_id, sets, name), few=few)


def is_in_one_of_each(provider_id: Any, sets: SetsShape, name: str, *, few: bool = False) -> SqlCondition:
    """Return the condition that a provider is in an aggregate of each set."""
    members = select(_IN.resource_provider_id)
    return _among(provider_id, _with_each(members, _IN.aggregate_id, sets, name), few=few)


def tree_has_one_of_each(root_id: Any, sets: SetsShape, name: str, *, few: bool = False) -> SqlCondition:
    """Return the condition that the providers of a tree together have a trait of each set."""
    holder = resource_providers.alias()
    roots = select(holder.c.root_provider_id).join(resource_provider_traits, _HAS.resource_provider_id == holder.c.id)
    return _among(root_id, _with_each(roots, _HAS.trait_id, sets, name), few=few)


def _among(id_: Any, links: Links, *, few: bool) -> SqlCondition:
    if few:
        (owner,) = links.selected_columns
        return links.where(owner == id_).exists()
    condition: SqlCondition = id_.in_(links)
    return condition


def _with_each(links: Links, key: Any, sets: SetsShape, name: str) -> Links:
    """Narrow a query for the owners of keys to those that have a key of each set.

    One subquery with a count for each set: a subquery per set would mean a join per set, and PostgreSQL spends minutes
    on planning a hundred of them.
    """
    links = links.where(key.in_(_ids(f"{name}_any")))
    if sets.several + sets.singles == 1:
        return links  # With a single set, any link is enough.
    counts = [_count(key, f"{name}_{index}") >= 1 for index in range(sets.several)]
    if sets.singles:
        counts.append(_count(key, f"{name}_singles") == bindparam(f"{name}_count", type_=BigInteger))
    return links.group_by(*links.selected_columns).having(and_(*counts))


def _count(key: Any, name: str) -> Any:
    return func.count(distinct(case((key.in_(_ids(name)), key))))


def _ids(name: str) -> Any:
    return bindparam(name, type_=Integer, expanding=True, literal_execute=True)
