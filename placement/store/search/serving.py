"""The providers that can serve a demand alone: the SQL that narrows, and its rows.

One statement covers all demands, those read together by one SELECT (UNION ALL). It checks everything that depends on a
single provider: capacity, unit rules, traits, aggregates, tree; what depends on others is left to the search.
"""

from collections.abc import Sequence
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
from placement.store.search.together import BITS, DemandReads, ServedDemands, read_together
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


DEMANDS, ROOT, PROVIDER, PARENT, FIT_COUNT = "demands", "root", "provider", "parent", "fit_count"


def room_of(place: int) -> str:
    """Return the name of the column with a contended class's room; ``place`` is its index in the plan."""
    return f"room_{place}"


@dataclass(frozen=True, slots=True)
class Serving:
    """Providers that can serve demands alone, with a row for each provider and read; ``together`` has the reads."""

    rows: list[tuple[Any, ...]]
    columns: Columns
    together: DemandReads

    @property
    def demands(self) -> ServedDemands:
        """The demands that a number in the column DEMANDS stands for."""
        return ServedDemands(self.together)

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
    """The statement whose rows make up Serving, their columns, and the demands of each read."""

    statement: PreparedStatement
    columns: Columns
    together: DemandReads


def _weight(shape: NarrowingShape, only: tuple[int, ...] | None = None) -> int:  # noqa: ARG001 - as the function
    return shape.conditions


@remembered(_weight)
def serving_providers(shape: NarrowingShape, only: tuple[int, ...] | None = None) -> ServingStatement:
    """Return the statement with a row for each provider and each read that finds it for any demand.

    Rows have (demands, root id, provider id, room of each contended class), then the parent and the fit count if the
    shape includes them. The fit count is summed over the classes, in whole millionths of type float: such sums are
    exact, whatever the order of the rows. ``only`` selects demands.
    """
    together = read_together(shape, range(len(shape.demands)) if only is None else only)

    def made() -> Executable:
        selects = [_serving(shape, demands, read=read)[1] for read, demands in enumerate(together)]
        return selects[0] if len(selects) == 1 else union_all(*selects)

    columns, _select = _serving(shape, together[0], read=0)
    statement = PreparedStatement(made, by_key=shape.scope is Scope.LISTED)
    return ServingStatement(statement, columns, together)


class _Owners(NamedTuple):
    """The providers that a select reads: the source, and the columns with their ids, roots and parents.

    There are no parents where the source is their stock.
    """

    source: Any
    id: Any
    root: Any
    parent: Any = None


def _serving(shape: NarrowingShape, demands: Sequence[int], *, read: int) -> tuple[Columns, Select[Any]]:
    """Return the select for demands of the same classes; its columns are the same for all demands of a shape."""
    first = demands[0]
    stocks = [
        StockSource(keeps_usage=shape.keeps_usage, name=f"{first}_{position}")
        for position in range(len(shape.demands[first].contended))
    ]
    owners = _owners(shape, demands, stocks)
    rooms: dict[str, Any] = {room_of(place): literal_column("0.0") for place in range(shape.contended)}
    for stock, place in zip(stocks, shape.demands[first].contended, strict=True):
        if place is not None:
            most = stock.inventory.c.max_unit
            rooms[room_of(place)] = case((stock.left < most, stock.left), else_=most)
    served = [_conditions(shape, demand, owners, stocks) for demand in demands]
    columns = {DEMANDS: _number(read, served), ROOT: owners.root, PROVIDER: owners.id, **rooms}
    if shape.with_parents:
        columns[PARENT] = owners.parent
    if shape.with_fit_counts:
        columns[FIT_COUNT] = _fit_count(first, stocks)
    conditions = [*_any_of(shape, served), *_tree_conditions(shape, owners)]
    return Columns(columns), select(*columns.values()).select_from(owners.source).where(*conditions)


def _owners(shape: NarrowingShape, demands: Sequence[int], stocks: Sequence[StockSource]) -> _Owners:
    """Return the providers of demands for the same classes, joined with their stock of each."""
    name = demands[0]
    class_ids = [
        bindparam(f"d{name}_class_{position}", type_=Integer, literal_execute=True) for position in range(len(stocks))
    ]
    if len(stocks) == 1 and _reads_stock_alone(shape, demands):
        stock, class_id = stocks[0], class_ids[0]
        return _Owners(stock.in_use_of(class_id), stock.inventory.c.resource_provider_id, stock.root)
    provider = resource_providers.alias(f"rp{name}")
    source: Any = provider
    for position, (stock, class_id) in enumerate(zip(stocks, class_ids, strict=True)):
        # Classes correlate: a provider that has one usually has the next, but PostgreSQL's planner multiplies their
        # selectivities. Rows without inventory do not fit, so an outer join gives the same result with a better
        # estimate.
        may_lack = shape.scope is Scope.ALL and position > 0
        source = stock.of_class(source, provider.c.id, class_id, or_none=may_lack)
    return _Owners(source, provider.c.id, provider.c.root_provider_id, provider.c.parent_provider_id)


def _reads_stock_alone(shape: NarrowingShape, demands: Sequence[int]) -> bool:
    """Tell whether to read stock without its providers, which takes half as long where it is all of a class.

    If there are few trees to look at, their providers are the way in.
    """
    if not shape.keeps_usage or shape.scope is not Scope.ALL or shape.sharing or shape.with_parents:
        return False
    are_inside = any(shape.demands[demand].in_tree for demand in demands)
    return not are_inside and shape.root.required == shape.root.tree_traits == NO_SETS


class _DemandConditions(NamedTuple):
    """The conditions that a provider can serve a demand, besides those on its tree: on its stock, and all others."""

    fits: Sequence[SqlCondition]
    others: Sequence[SqlCondition]

    @property
    def together(self) -> SqlCondition:
        return and_(*self.fits, *self.others)


def _conditions(shape: NarrowingShape, index: int, owners: _Owners, stocks: Sequence[StockSource]) -> _DemandConditions:
    is_there = shape.demands[index].ignores_usage
    fits = [
        stock.capacity > NOTHING if is_there else _fits(shape, stock, owners.id, _amount(index, position))
        for position, stock in enumerate(stocks)
    ]
    return _DemandConditions(fits, _provider_conditions(shape, index, owners))


def _any_of(shape: NarrowingShape, served: Sequence[_DemandConditions]) -> list[SqlCondition]:
    """Return the conditions that a provider can serve any of some demands."""
    if len(served) > 1:
        return [_half_if_all(shape, or_(*[one.together for one in served]))]
    (alone,) = served
    return [*[_half_if_all(shape, fits) for fits in alone.fits], *alone.others]


def _number(read: int, served: Sequence[_DemandConditions]) -> Any:
    """Return the column of numbers that ``ServedDemands`` explains."""
    first = read << BITS
    if len(served) == 1:
        return literal_column(str(first + 1), Integer)
    bits = [
        case((one.together, literal_column(str(1 << place), Integer)), else_=NOTHING)
        for place, one in enumerate(served)
    ]
    return sum(bits, start=literal_column(str(first), Integer))


def _fit_count(index: int, stocks: Sequence[StockSource]) -> Any:
    counts = [
        whole(cast(stock.left, Double) * MILLION / cast(_amount(index, position), Double))
        for position, stock in enumerate(stocks)
    ]
    return sum(counts[1:], start=counts[0]) if counts else literal_column("0.0")


def _amount(index: int, position: int) -> Any:
    return bindparam(f"d{index}_amount_{position}", type_=BigInteger)


def _fits(shape: NarrowingShape, stock: StockSource, provider_id: Any, amount: Any) -> SqlCondition:
    if not shape.spares:
        return stock.fits(amount)
    rules = dict(stock.rules(amount))
    is_spared = provider_id.in_(bindparam("spared", expanding=True))
    has_room = or_(rules.pop("capacity"), and_(is_spared, amount <= stock.capacity))
    return and_(has_room, *rules.values())


def _half_if_all(shape: NarrowingShape, condition: SqlCondition) -> SqlCondition:
    """Wrap a condition in CASE, so that PostgreSQL's planner estimates that every other row of all trees meets it.

    Otherwise it multiplies the selectivities of the parts, which is far too low for a whole cloud, where most rows fit.
    """
    return case((condition, true()), else_=false()) if shape.scope is Scope.ALL else condition


def _provider_conditions(shape: NarrowingShape, index: int, owners: _Owners) -> list[SqlCondition]:
    demand = shape.demands[index]
    prefix = f"d{index}_"
    few = shape.looks_at_few
    conditions: list[SqlCondition] = []
    if demand.required != NO_SETS:
        conditions.append(has_one_of_each(owners.id, demand.required, f"{prefix}required", few=few))
    if demand.forbidden:
        conditions.append(~has_trait(owners.id, f"{prefix}forbidden", few=few))
    if demand.forbidden_aggregates:
        conditions.append(~is_member(owners.id, f"{prefix}forbidden_aggregates", few=few))
    if demand.member_of != NO_SETS:
        conditions.append(_membership(shape, demand, owners, f"{prefix}member_of"))
    if demand.in_tree:
        conditions.append(owners.root == bindparam(f"{prefix}root"))
    return conditions


def _tree_conditions(shape: NarrowingShape, owners: _Owners) -> list[SqlCondition]:
    """Return the conditions that all demands have in common: on the provider's tree, or that it shares."""
    if shape.sharing:
        return [has_trait(owners.id, "sharing_trait")]
    return root_conditions(shape.root, owners.root, scope=shape.scope)


def _membership(shape: NarrowingShape, demand: DemandShape, owners: _Owners, name: str) -> SqlCondition:
    """Return the condition of being in an aggregate of each set; for the unsuffixed group a root's spans its tree."""
    own = is_in_one_of_each(owners.id, demand.member_of, name, few=shape.looks_at_few)
    if demand.granular or shape.sharing:
        return own
    return or_(own, is_in_one_of_each(owners.root, demand.member_of, name, few=shape.looks_at_few))
