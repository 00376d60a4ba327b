"""Lists of providers, a part at a time: search, order and cut in SQL."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import ColumnElement, func, or_, select

from placement.store.connection.unit_of_work import Transaction
from placement.store.console.counting import counted
from placement.store.providers import RP
from placement.store.tables import resource_providers


class ConsoleProvider(NamedTuple):
    """A provider in a list; ``size`` is the number of providers in its tree."""

    id: int
    uuid: str
    name: str
    generation: int
    changed_at: datetime | None
    root_uuid: str
    root_name: str
    size: int

    @property
    def is_root(self) -> bool:
        """Whether it stands for its tree."""
        return self.uuid == self.root_uuid


_ROOT = resource_providers.alias("root")
_MEMBER = resource_providers.alias("member")
_SIZE = (
    select(func.count())
    .select_from(_MEMBER)
    .where(_MEMBER.c.root_provider_id == RP.root_provider_id)
    .correlate(resource_providers)
    .scalar_subquery()
)
_COLUMNS = select(
    RP.id,
    RP.uuid,
    func.coalesce(RP.name, RP.uuid),
    RP.generation,
    func.coalesce(RP.updated_at, RP.created_at),
    _ROOT.c.uuid,
    func.coalesce(_ROOT.c.name, _ROOT.c.uuid),
    _SIZE,
).select_from(resource_providers.join(_ROOT, RP.root_provider_id == _ROOT.c.id))


def named_like(text: str) -> ColumnElement[bool]:
    """Return the condition that a text is part of a provider's name, or the beginning of its uuid."""
    return or_(RP.name.icontains(text, autoescape=True), RP.uuid.istartswith(text, autoescape=True))


def is_root() -> ColumnElement[bool]:
    """Return the condition that a provider is the root of its tree."""
    return RP.parent_provider_id.is_(None)


def listed_providers(
    tx: Transaction, conditions: Sequence[ColumnElement[bool]], *, first: int, most: int
) -> list[ConsoleProvider]:
    """Return a part of the providers that meet the conditions: roots first, then by name."""
    query = (
        _COLUMNS.where(*conditions)
        .order_by(RP.parent_provider_id.is_not(None), RP.name, RP.id)
        .offset(first)
        .limit(most)
    )
    return [ConsoleProvider(*row) for row in tx.execute(query)]


def provider_count(tx: Transaction, conditions: Sequence[ColumnElement[bool]]) -> int | None:
    """Return how many providers meet the conditions; None for too many to count."""
    return counted(tx, select(RP.id).where(*conditions))
