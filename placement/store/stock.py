"""Stock: what providers have of resource classes, what is used and what is left. It is joined and computed only here.

Capacity is ``(total - reserved) * allocation_ratio``, a float whose fraction cannot be allocated. An amount is whole,
so it fits into the float exactly if it fits into the truncated number: conditions compare with the float, as the
reference's search does, while anything shown or summed is truncated, as in ``domain.inventory`` and in the reference's
check of allocations. ``tests/store/test_stock.py`` shows that the databases and Python agree.
"""

from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Double,
    FromClause,
    Integer,
    Join,
    and_,
    case,
    cast,
    func,
    literal_column,
    or_,
    select,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import GenericFunction

from placement.domain.inventory import UNBOUNDED
from placement.domain.quantities import LARGEST_CAPACITY
from placement.store.tables import allocations, inventories, provider_usages, resource_providers

# Literals rather than parameters, so that the query planner sees them.
NOTHING: Any = literal_column("0", Integer)
LITERAL_ONE: Any = literal_column("1", Integer)

STEP_SIZE: Any = case(
    (inventories.c.step_size > NOTHING, inventories.c.step_size), else_=literal_column(str(UNBOUNDED))
)
"""The step of an inventory. No amount is a multiple of 0, and none fits the step that is read in its place."""


_SUMMED = (
    select(
        allocations.c.resource_provider_id,
        allocations.c.resource_class_id,
        # MariaDB sums integers to decimals.
        cast(func.sum(allocations.c.used), BigInteger).label("used"),
    )
    .group_by(allocations.c.resource_provider_id, allocations.c.resource_class_id)
    .subquery("summed_usages")
)
"""The usage by provider and class, where it is not kept; what has no row has no usage."""


class StockSource:
    """Inventories joined with their usage, kept or summed, and expressions over both."""

    __slots__ = ("usage",)

    inventory = inventories

    def __init__(self, *, keeps_usage: bool) -> None:
        self.usage: FromClause = provider_usages if keeps_usage else _SUMMED

    @property
    def rows(self) -> Join:
        """All inventories, with the usage of each."""
        return self.with_usage(self.inventory)

    @property
    def in_use(self) -> Join:
        """The inventories that have, or once had, usage: all of them, where it is kept."""
        return self.inventory.join(self.usage, self._of_same)

    def with_usage(self, source: FromClause, *conditions: ColumnElement[bool]) -> Join:
        """Join a source that contains the inventories with the usage of each, NULL where there is none.

        Further conditions on the usage leave less to be summed where it is not kept.
        """
        return source.outerjoin(self.usage, and_(self._of_same, *conditions))

    @property
    def capacity(self) -> ColumnElement[Any]:
        """The capacity as an untruncated float."""
        # Wider than the columns: PostgreSQL would fail if the difference of two integers were none.
        total = cast(self.inventory.c.total, BigInteger) - self.inventory.c.reserved
        return total * bounded_ratio(self.inventory.c.allocation_ratio)

    @property
    def whole_capacity(self) -> ColumnElement[Any]:
        """The same as ``domain.inventory.Inventory.capacity``: whole and bounded, though still of type float."""
        return whole_capacity(self.capacity)

    @property
    def usable_capacity(self) -> ColumnElement[Any]:
        """The same, but 0 rather than negative if more is reserved than there is."""
        return case((self.capacity > NOTHING, self.whole_capacity), else_=NOTHING)

    @property
    def used(self) -> ColumnElement[Any]:
        """The amount in use: nothing where it is NULL, or negative because somebody wrote such allocations."""
        return case((self.usage.c.used > NOTHING, self.usage.c.used), else_=NOTHING)

    def fits(self, amount: ColumnElement[Any]) -> ColumnElement[bool]:
        """Return the condition for taking an amount: ``domain.inventory.Inventory.fits`` in SQL."""
        has = self.inventory.c
        return and_(
            amount <= self.capacity - self.used,
            has.min_unit <= amount,
            has.max_unit >= amount,
            # The redundant comparison is for PostgreSQL's planner: for the modulo alone it estimates one row in two
            # hundred and picks a nested loop over thousands of rows.
            or_(has.step_size == LITERAL_ONE, amount % func.nullif(has.step_size, NOTHING) == NOTHING),
        )

    @property
    def _of_same(self) -> ColumnElement[bool]:
        has, uses = self.inventory.c, self.usage.c
        return and_(
            uses.resource_provider_id == has.resource_provider_id, uses.resource_class_id == has.resource_class_id
        )


def stock_by_tree(*, keeps_usage: bool) -> FromClause:
    """Return a selectable with one row for each inventory.

    Its columns are root_provider_id, resource_provider_id, resource_class_id, capacity (truncated) and used.
    Triggers that keep usage keep all of them in one table, because the joins would take most of the time of a sum.
    """
    if keeps_usage:
        kept = provider_usages.c
        return select(provider_usages).where(kept.capacity.is_not(None), kept.root_provider_id.is_not(None)).subquery()
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
        .where(owner.root_provider_id.is_not(None))
        .subquery()
    )


_CAPACITY = {
    # What is no number becomes the bound, as in Python; on SQLite it is NULL.
    "postgresql": "trunc(greatest(least({0}, {1}), -{1}))",
    "sqlite": "CAST(coalesce(max(min({0}, {1}), -{1}), {1}) AS INTEGER)",
    "mysql": "TRUNCATE(GREATEST(LEAST({0}, {1}), -{1}), 0)",
}


_RATIO = "CASE WHEN abs({0}) BETWEEN 1e290 AND 1.7976931348623157e308 THEN sign({0}) * 1e290 ELSE {0} END"
"""A ratio with which products stay within what PostgreSQL calculates; the bound on capacities hides the difference."""


def capacity_text(dialect: str, row: str) -> str:
    """Return the SQL for the capacity of a row of ``inventories``, whole and bounded."""
    total, ratio = f"{row}.total", f"{row}.allocation_ratio"
    if dialect == "postgresql":
        total, ratio = f"CAST({total} AS bigint)", _RATIO.format(ratio)
    return _CAPACITY[dialect].format(f"({total} - {row}.reserved) * {ratio}", LARGEST_CAPACITY)


class bounded_ratio(GenericFunction[float]):  # noqa: N801 - a function of SQL
    """An allocation ratio that no difference of two integers of a table makes too large to calculate with."""

    type = Double()
    inherit_cache = True


@compiles(bounded_ratio)
def _as_it_is(element: Any, compiler: SQLCompiler, **options: Any) -> str:
    return compiler.process(element.clauses, **options)


@compiles(bounded_ratio, "postgresql")
def _bound_ratio(element: Any, compiler: SQLCompiler, **options: Any) -> str:
    return _RATIO.format(compiler.process(element.clauses, **options))


class whole_capacity(GenericFunction[float]):  # noqa: N801 - a function of SQL
    """A capacity as ``domain.inventory`` defines it, truncated and bounded, still of type float."""

    type = Double()
    inherit_cache = True


@compiles(whole_capacity)
def _bound(element: Any, compiler: SQLCompiler, **options: Any) -> str:
    capacity = compiler.process(element.clauses, **options)
    return _CAPACITY[compiler.dialect.name].format(capacity, LARGEST_CAPACITY)
