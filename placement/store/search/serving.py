"""The providers that can serve a demand alone: the SQL that narrows, and its rows.

One statement covers all demands (UNION ALL). It checks everything that depends on a single provider: capacity, unit
rules, traits, aggregates, tree; what depends on others is left to the search.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    Double,
    Executable,
    Integer,
    Select,
    and_,
    bindparam,
    case,
    cast,
    false,
    literal_column,
    or_,
    select,
    true,
    union_all,
)

from placement.store.connection.memory import remembered
from placement.store.connection.prepared import PreparedStatement
from placement.store.search.any_of import (
    NO_SETS,
    SqlCondition,
    has_one_of_each,
    has_trait,
    is_in_one_of_each,
    is_member,
)
from placement.store.search.ranges import Scope
from placement.store.search.roots import root_conditions
from placement.store.search.shapes import DemandShape, NarrowingShape
from placement.store.stock import NOTHING, StockSource
from placement.store.tables import resource_providers
from placement.store.whole_numbers import whole

# A literal rather than a parameter, so that the query planner sees it.
MILLION: Any = literal_column("1000000.0", Double)


class Columns(tuple[str, ...]):
    """The column names of a statement in order, built together with its select, so that positions cannot drift."""

    __slots__ = ()

    def at(self, *names: str) -> tuple[int, ...]:
        """Return the positions of columns in a row."""
        return tuple(self.index(name) for name in names)


DEMAND, ROOT, PROVIDER, PARENT, FIT_COUNT = "demand", "root", "provider", "parent", "fit_count"


def room_of(place: int) -> str:
    """Return the name of the column with a contended class's room; ``place`` is its index in the plan."""
    return f"room_{place}"


@dataclass(frozen=True, slots=True)
class Serving:
    """Providers that can serve demands alone, with a row for each provider and demand."""

    rows: list[tuple[Any, ...]]
    columns: Columns

    def roots(self) -> set[int]:
        """Return the roots of all their trees."""
        (root,) = self.columns.at(ROOT)
        return {row[root] for row in self.rows}

    def parents(self) -> dict[int, int | None]:
        """Return the parent of each provider. The statement must include parents."""
        provider, parent = self.columns.at(PROVIDER, PARENT)
        return {row[provider]: row[parent] for row in self.rows}

    def fit_counts(self) -> dict[int, float]:
        """Return each provider's fit count, summed over all demands that it can serve."""
        provider, count = self.columns.at(PROVIDER, FIT_COUNT)
        found: dict[int, float] = {}
        for row in self.rows:
            found[row[provider]] = found.get(row[provider], 0.0) + row[count]
        return found


class ServingStatement(NamedTuple):
    """The statement whose rows make up Serving, and their columns."""

    statement: PreparedStatement
    columns: Columns


def _weight(shape: NarrowingShape, only: tuple[int, ...] | None = None) -> int:  # noqa: ARG001 - as the function
    return shape.conditions


@remembered(_weight)
def serving_providers(shape: NarrowingShape, only: tuple[int, ...] | None = None) -> ServingStatement:
    """Return the statement with a row for each provider and each demand that it can serve alone.

    Rows have (demand, root id, provider id, room of each contended class), then the parent and the fit count if the
    shape includes them. The fit count is summed over the classes, in whole millionths of type float: such sums are
    exact, whatever the order of the rows. ``only`` selects demands.
    """
    indices = range(len(shape.demands)) if only is None else only

    def made() -> Executable:
        selects = [_serving(shape, index)[1] for index in indices]
        return selects[0] if len(selects) == 1 else union_all(*selects)

    columns, _select = _serving(shape, indices[0])
    return ServingStatement(PreparedStatement(made), columns)


def _serving(shape: NarrowingShape, index: int) -> tuple[Columns, Select[Any]]:
    """Return the select for one demand; its columns are the same for all demands of a shape."""
    demand = shape.demands[index]
    provider = resource_providers.alias(f"rp{index}")
    source: Any = provider
    conditions: list[SqlCondition] = []
    rooms: dict[str, Any] = {room_of(place): literal_column("0.0") for place in range(shape.contended)}
    counts: list[Any] = []
    for position, place in enumerate(demand.contended):
        stock = StockSource(keeps_usage=shape.keeps_usage, name=f"{index}_{position}")
        class_id = bindparam(f"d{index}_class_{position}", type_=Integer, literal_execute=True)
        amount = bindparam(f"d{index}_amount_{position}", type_=BigInteger)
        # Classes correlate: a provider that has one usually has the next, but PostgreSQL's planner multiplies their
        # selectivities. Rows without inventory do not fit, so an outer join gives the same result with a better
        # estimate.
        may_lack = shape.scope is Scope.ALL and position > 0
        source = stock.of_class(source, provider.c.id, class_id, or_none=may_lack)
        fits = stock.capacity > NOTHING if demand.ignores_usage else _fits(shape, stock, provider.c.id, amount)
        conditions.append(_guessed_as_half(fits) if shape.scope is Scope.ALL else fits)
        counts.append(whole(cast(stock.left, Double) * MILLION / cast(amount, Double)))
        if place is not None:
            most = stock.inventory.c.max_unit
            rooms[room_of(place)] = case((stock.left < most, stock.left), else_=most)
    columns = {DEMAND: literal_column(str(index)), ROOT: provider.c.root_provider_id, PROVIDER: provider.c.id, **rooms}
    if shape.with_parents:
        columns[PARENT] = provider.c.parent_provider_id
    if shape.with_fit_counts:
        columns[FIT_COUNT] = sum(counts[1:], start=counts[0]) if counts else literal_column("0.0")
    conditions += _provider_conditions(shape, index, provider)
    return Columns(columns), select(*columns.values()).select_from(source).where(*conditions)


def _fits(shape: NarrowingShape, stock: StockSource, provider_id: Any, amount: Any) -> SqlCondition:
    if not shape.spares:
        return stock.fits(amount)
    rules = dict(stock.rules(amount))
    is_spared = provider_id.in_(bindparam("spared", expanding=True))
    has_room = or_(rules.pop("capacity"), and_(is_spared, amount <= stock.capacity))
    return and_(has_room, *rules.values())


def _guessed_as_half(condition: SqlCondition) -> SqlCondition:
    """Wrap a condition in CASE, so that PostgreSQL's planner estimates that every other row meets it.

    Otherwise it multiplies the selectivities of the parts, which is far too low for a whole cloud, where most rows fit.
    """
    return case((condition, true()), else_=false())


def _provider_conditions(shape: NarrowingShape, index: int, provider: Any) -> list[SqlCondition]:
    demand = shape.demands[index]
    prefix = f"d{index}_"
    conditions: list[SqlCondition] = []
    if demand.required != NO_SETS:
        conditions.append(has_one_of_each(provider.c.id, demand.required, f"{prefix}required"))
    if demand.forbidden:
        conditions.append(~has_trait(provider.c.id, f"{prefix}forbidden"))
    if demand.forbidden_aggregates:
        conditions.append(~is_member(provider.c.id, f"{prefix}forbidden_aggregates"))
    if demand.member_of != NO_SETS:
        conditions.append(_membership(shape, demand, provider, f"{prefix}member_of"))
    if demand.in_tree:
        conditions.append(provider.c.root_provider_id == bindparam(f"{prefix}root"))
    if shape.sharing:
        conditions.append(has_trait(provider.c.id, "sharing_trait"))
    else:
        conditions += root_conditions(shape.root, provider.c.root_provider_id, scope=shape.scope)
    return conditions


def _membership(shape: NarrowingShape, demand: DemandShape, provider: Any, name: str) -> SqlCondition:
    """Return the condition of being in an aggregate of each set; for the unsuffixed group a root's spans its tree."""
    own = is_in_one_of_each(provider.c.id, demand.member_of, name)
    if demand.granular or shape.sharing:
        return own
    return or_(own, is_in_one_of_each(provider.c.root_provider_id, demand.member_of, name))
