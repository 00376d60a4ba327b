"""Which condition on single providers left none: one statement that returns a row for each demand.

Meant for a log line, where a full explanation would cost more than the search. Whether demands that can each be served
can also be served together is not considered.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Executable,
    Select,
    and_,
    bindparam,
    case,
    func,
    literal_column,
    select,
    union_all,
)

from placement.domain.search_plan import Plan
from placement.store.connection.memory import remembered
from placement.store.connection.prepared import PreparedStatement
from placement.store.connection.unit_of_work import Transaction
from placement.store.search.any_of import NO_SETS, has_one_of_each, has_trait, is_in_one_of_each, is_member
from placement.store.search.names import NamedIds
from placement.store.search.shapes import DemandShape, demand_shapes, parameters
from placement.store.stock import StockSource
from placement.store.tables import resource_providers

STEPS = (
    "inventory",
    "capacity",
    "min_unit",
    "max_unit",
    "step_size",
    "required",
    "forbidden",
    "member_of",
    "forbidden_aggregates",
    "in_tree",
)
"""The conditions, in the order and by the names of an explanation."""

Conditions = dict[str, list[ColumnElement[bool]]]


@dataclass(frozen=True, slots=True)
class _RefusalShape:
    demands: tuple[DemandShape, ...]
    asked: tuple[int, ...]
    keeps_usage: bool


def conditions_that_left_nobody(tx: Transaction, plan: Plan, ids: NamedIds, asked: Sequence[int]) -> dict[int, str]:
    """Return, for each demand that no provider can serve, the first condition after which none is left.

    ``asked`` are the indices of the demands to look at: each costs as much as searching for it did.
    """
    if not asked:
        return {}
    demands = demand_shapes(plan)
    shape = _RefusalShape(demands, tuple(asked), tx.database.keeps_usage)
    furthest = dict(tx.tuples(_furthest(shape), parameters(plan, ids)))
    # Without any row, no provider has inventory.
    reached = {index: furthest.get(index) or 0 for index in asked}
    return {index: STEPS[step] for index, step in reached.items() if step < len(STEPS)}


def _weight(shape: _RefusalShape) -> int:
    return sum(shape.demands[index].conditions for index in shape.asked)


@remembered(_weight)
def _furthest(shape: _RefusalShape) -> PreparedStatement:
    """Return the statement for rows of (demand, number of conditions that the best provider meets in turn)."""

    def made() -> Executable:
        selects = [_refusals(shape, index) for index in shape.asked]
        return selects[0] if len(selects) == 1 else union_all(*selects)

    return PreparedStatement(made)


def _refusals(shape: _RefusalShape, index: int) -> Select[Any]:
    demand = shape.demands[index]
    provider = resource_providers.alias(f"rp{index}")
    source: Any = provider
    conditions: Conditions = {step: [] for step in STEPS}
    for position in range(len(demand.contended)):
        stock = StockSource(keeps_usage=shape.keeps_usage, name=f"{index}_{position}")
        class_id = bindparam(f"d{index}_class_{position}", type_=BigInteger)
        # Outer joins after the first class: a provider that has only that one must be told apart from none at all.
        source = stock.of_class(source, provider.c.id, class_id, or_none=position > 0)
        conditions["inventory"].append(stock.inventory.c.id.is_not(None))
        for rule, condition in stock.rules(bindparam(f"d{index}_amount_{position}", type_=BigInteger)).items():
            conditions[rule].append(condition)
    _add_provider_conditions(conditions, demand, index, provider)
    met: Any = func.max(_steps_met(conditions))
    return select(literal_column(str(index)), met).select_from(source)


def _add_provider_conditions(conditions: Conditions, demand: DemandShape, index: int, provider: Any) -> None:
    prefix = f"d{index}_"
    if demand.required != NO_SETS:
        conditions["required"].append(has_one_of_each(provider.c.id, demand.required, f"{prefix}required"))
    if demand.forbidden:
        conditions["forbidden"].append(~has_trait(provider.c.id, f"{prefix}forbidden"))
    if demand.member_of != NO_SETS:
        ids = [provider.c.id] if demand.granular else [provider.c.id, provider.c.root_provider_id]
        member = [is_in_one_of_each(id_, demand.member_of, f"{prefix}member_of") for id_ in ids]
        conditions["member_of"].append(reduce(lambda one, other: one | other, member))
    if demand.forbidden_aggregates:
        conditions["forbidden_aggregates"].append(~is_member(provider.c.id, f"{prefix}forbidden_aggregates"))
    if demand.in_tree:
        conditions["in_tree"].append(provider.c.root_provider_id == bindparam(f"{prefix}root"))


def _steps_met(conditions: Conditions) -> ColumnElement[int]:
    """Return how many steps a provider meets in turn.

    The CASEs are nested so that a comparison with NULL counts as not met.
    """
    met: ColumnElement[int] = literal_column(str(len(STEPS)))
    for number, step in reversed(list(enumerate(STEPS))):
        if conditions[step]:
            met = case((and_(*conditions[step]), met), else_=literal_column(str(number)))
    return met
