"""What the planner wants to know of provider trees besides who can serve what: names, and places of levels."""

from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import bindparam, select

from placement.store.connection.kept import Kept
from placement.store.connection.unit_of_work import Transaction
from placement.store.search.ranges import is_between
from placement.store.search.summaries import LISTED
from placement.store.tables import resource_provider_traits, resource_providers

_RP = resource_providers.c
_HAS = resource_provider_traits.c


def provider_names(tx: Transaction, roots: Collection[int]) -> dict[int, str]:
    """Return the names of all providers of trees."""
    rows = tx.tuples(_names(listed=_is_listed(roots)), _values(roots))
    return {id_: name or uuid for id_, name, uuid, root in rows if root in roots}


def places(tx: Transaction, trait_ids: Sequence[int]) -> list[tuple[int, int | None, int]]:
    """Return (provider, parent, trait) for every provider that has any of these traits."""
    return tx.tuples(_PLACES, {"traits": list(trait_ids)}) if trait_ids else []


def parents_of(tx: Transaction, providers: Collection[int]) -> list[tuple[int, int | None]]:
    """Return (provider, parent) for some providers, and perhaps for others in between."""
    return tx.tuples(_parents(listed=_is_listed(providers)), _values(providers)) if providers else []


def _is_listed(ids: Collection[int]) -> bool:
    return len(ids) <= LISTED


def _values(ids: Collection[int]) -> dict[str, Any]:
    return {"ids": sorted(ids)} if _is_listed(ids) else {"first": min(ids), "last": max(ids)}


def _among(column: Any, *, listed: bool) -> Any:
    return column.in_(bindparam("ids", expanding=True)) if listed else is_between(column, "first", "last")


@lru_cache(maxsize=2)
def _names(*, listed: bool) -> Kept:
    columns = select(_RP.id, _RP.name, _RP.uuid, _RP.root_provider_id)
    return Kept(columns.where(_among(_RP.root_provider_id, listed=listed)))


@lru_cache(maxsize=2)
def _parents(*, listed: bool) -> Kept:
    return Kept(select(_RP.id, _RP.parent_provider_id).where(_among(_RP.id, listed=listed)))


_PLACES = Kept(
    select(_RP.id, _RP.parent_provider_id, _HAS.trait_id)
    .select_from(resource_provider_traits.join(resource_providers, _RP.id == _HAS.resource_provider_id))
    .where(_HAS.trait_id.in_(bindparam("traits", expanding=True)))
)
