"""What providers have of resource classes, what is in use and what is left: joined and computed here and nowhere else.

Capacity is ``(total - reserved) * allocation_ratio``, a float, of which what is behind the point cannot be allocated.
An amount is whole, so it fits into the float where it fits into the whole number: conditions compare with the float,
as the reference's search does; whatever is shown or summed is cut off, as ``domain.inventory`` does and the
reference's check of allocations. tests/store/test_stock.py shows that databases and Python agree.
"""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import ColumnElement, FromClause, Integer, Join, and_, func, literal_column, or_, select

from placement.store.kept_usage.usage_source import usage_source
from placement.store.tables import inventories, provider_usages, resource_providers
from placement.store.whole_numbers import whole

# Numbers the planner is to know.
NOTHING: Any = literal_column("0", Integer)
ONE: Any = literal_column("1", Integer)


class StockSource:
    """Inventories, what is in use of them beside each, and what is computed of both.

    Args:
        keeps_usage: whether usage is kept, or has to be summed up.
        name: what tells this one from others in the same statement.
    """

    __slots__ = ("inventory", "usage")

    def __init__(self, *, keeps_usage: bool, name: str = "") -> None:
        usage = usage_source(keeps_usage=keeps_usage)
        self.inventory: FromClause = inventories.alias(f"inv{name}") if name else inventories
        self.usage: FromClause = usage.alias(f"use{name}") if name else usage

    @property
    def rows(self) -> Join:
        """All inventories, with what is in use of each."""
        return self.with_usage(self.inventory)

    @property
    def in_use(self) -> Join:
        """The inventories of which something is or was in use."""
        return self.inventory.join(self.usage, self._of_same)

    def with_usage(self, source: FromClause, *conditions: ColumnElement[bool]) -> Join:
        """Return a source that has the inventories, with what is in use of each; NULL where nothing is.

        Args:
            source: the inventories, or a join with them.
            conditions: what else is known of the usage that matters: where it is summed up, less is.
        """
        return source.outerjoin(self.usage, and_(self._of_same, *conditions))

    def of_class(
        self, source: FromClause, provider_id: ColumnElement[Any], class_id: ColumnElement[Any], *, or_none: bool
    ) -> Join:
        """Return a source of providers, each with its stock of one class.

        Args:
            source: the providers.
            provider_id: the column with their ids.
            class_id: the class.
            or_none: whether providers without inventory of the class stay.
        """
        has, uses = self.inventory.c, self.usage.c
        return source.join(
            self.inventory,
            and_(has.resource_provider_id == provider_id, has.resource_class_id == class_id),
            isouter=or_none,
        ).outerjoin(self.usage, and_(uses.resource_provider_id == provider_id, uses.resource_class_id == class_id))

    @property
    def capacity(self) -> ColumnElement[Any]:
        """How much may be allocated in all, as a float that is not cut off."""
        return (self.inventory.c.total - self.inventory.c.reserved) * self.inventory.c.allocation_ratio

    @property
    def whole_capacity(self) -> ColumnElement[Any]:
        """The same as ``domain.inventory.Inventory.capacity``: a whole number, still of type float."""
        return whole(self.capacity)

    @property
    def used(self) -> ColumnElement[Any]:
        """How much is in use."""
        return func.coalesce(self.usage.c.used, NOTHING)

    @property
    def left(self) -> ColumnElement[Any]:
        """How much is left, not cut off; negative for a provider that has given away more than it has."""
        return self.capacity - self.used

    def rules(self, amount: ColumnElement[Any]) -> Mapping[str, ColumnElement[bool]]:
        """Return the conditions that an amount can be taken under, by their names in an explanation."""
        has = self.inventory.c
        return {
            "capacity": amount <= self.left,
            "min_unit": has.min_unit <= amount,
            "max_unit": has.max_unit >= amount,
            # Said twice for PostgreSQL's planner: of the modulo alone it expects one row in two hundred, and then joins
            # thousands of rows one by one.
            "step_size": or_(has.step_size == ONE, amount % has.step_size == NOTHING),
        }

    def fits(self, amount: ColumnElement[Any]) -> ColumnElement[bool]:
        """Return the condition that an amount can be taken: ``domain.inventory.Inventory.fits``."""
        return and_(*self.rules(amount).values())

    @property
    def _of_same(self) -> ColumnElement[bool]:
        has, uses = self.inventory.c, self.usage.c
        return and_(
            uses.resource_provider_id == has.resource_provider_id, uses.resource_class_id == has.resource_class_id
        )


def stock_by_tree(*, keeps_usage: bool) -> FromClause:
    """Return something to select from, an inventory a row.

    It has root_provider_id, resource_provider_id, resource_class_id, capacity (cut off) and used.

    Where triggers keep usage they keep all of this beside it: the joins take most of the time that sums take.
    """
    if keeps_usage:
        return select(provider_usages).where(provider_usages.c.capacity.is_not(None)).subquery()
    stock = StockSource(keeps_usage=False)
    owner, has = resource_providers.c, stock.inventory.c
    return (
        select(
            owner.root_provider_id,
            has.resource_provider_id,
            has.resource_class_id,
            stock.whole_capacity.label("capacity"),
            stock.used.label("used"),
        )
        .select_from(stock.with_usage(stock.inventory.join(resource_providers, owner.id == has.resource_provider_id)))
        .subquery()
    )
