"""The shape of a narrowing statement, and the values it binds.

A statement is built once for each *shape* of request (how many conditions of which kind) and reused; values are bound.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from placement.domain.search_plan import Demand, Plan
from placement.store.search.any_of import NO_SETS, SetsShape, known, sets_parameters, sets_shape
from placement.store.search.names import NamedIds
from placement.store.search.ranges import Scope
from placement.store.search.roots import RootShape

Parameters = dict[str, Any]


@dataclass(frozen=True, slots=True)
class DemandShape:
    """The shape of a demand's conditions.

    ``classes`` numbers the classes in the order in which the plan names them; ``contended`` has each class's index in
    the plan's list of these, or None.
    """

    granular: bool
    classes: tuple[int, ...]
    contended: tuple[int | None, ...]
    required: SetsShape
    forbidden: bool
    member_of: SetsShape
    forbidden_aggregates: bool
    in_tree: bool
    ignores_usage: bool = False

    @property
    def is_selective(self) -> bool:
        """Whether it names something that few providers may have, and that they can be found by."""
        return self.required != NO_SETS or self.member_of != NO_SETS or self.in_tree

    @property
    def conditions(self) -> int:
        """The approximate number of conditions: the weight of its statement."""
        return 1 + len(self.contended) + self.required.several + self.member_of.several


@dataclass(frozen=True, slots=True)
class NarrowingShape:
    """The shape of a narrowing statement.

    ``sharing`` selects sharing providers instead of the trees' own; ``with_fit_counts`` adds fit counts and
    ``with_parents`` parents; ``spares`` admits given providers that have no room now, but could have.
    """

    demands: tuple[DemandShape, ...]
    root: RootShape
    contended: int
    scope: Scope
    sharing: bool
    keeps_usage: bool
    with_fit_counts: bool = False
    with_parents: bool = False
    spares: bool = False

    @property
    def looks_at_few(self) -> bool:
        """Whether few providers are left by the condition on their trees, or that they share."""
        return self.sharing or self.scope is Scope.LISTED

    @property
    def conditions(self) -> int:
        """The approximate number of conditions: the weight of its statement."""
        of_root = self.root.required.several + self.root.tree_traits.several
        return sum(demand.conditions + of_root for demand in self.demands)


def narrowing_shape(
    plan: Plan, ids: NamedIds, *, keeps_usage: bool, with_fit_counts: bool, spares: bool = False
) -> NarrowingShape:
    """Return the shape of the statement that narrows all trees by their own providers."""
    return NarrowingShape(
        demands=demand_shapes(plan),
        root=RootShape(
            required=sets_shape([frozenset({name}) for name in plan.request.root_required]),
            forbidden=bool(plan.request.root_forbidden),
            forbidden_aggregates=bool(plan.forbidden_root_aggregates),
            # If providers share, a trait may come from outside the tree, so its own providers do not decide.
            tree_traits=NO_SETS if ids.shares else sets_shape(plan.trait_sets),
        ),
        contended=len(plan.contended),
        scope=Scope.ALL,
        sharing=False,
        keeps_usage=keeps_usage,
        with_fit_counts=with_fit_counts,
        spares=spares,
    )


def demand_shapes(plan: Plan) -> tuple[DemandShape, ...]:
    """Return the shapes of the demands of a plan."""
    numbers: dict[str, int] = {}
    return tuple([_demand_shape(plan, demand, numbers) for demand in plan.demands])


def _demand_shape(plan: Plan, demand: Demand, numbers: dict[str, int]) -> DemandShape:
    group, names = demand.group, [name for name, _amount in demand.resources]
    return DemandShape(
        granular=group.is_granular,
        classes=tuple([numbers.setdefault(name, len(numbers)) for name in names]),
        contended=tuple([plan.contended.index(name) if name in plan.contended else None for name in names]),
        required=sets_shape(demand.required),
        forbidden=bool(group.forbidden),
        member_of=sets_shape(group.member_of),
        forbidden_aggregates=bool(group.forbidden_aggregates),
        # A granular group without resources is found in any tree, as in the reference.
        in_tree=group.in_tree is not None and bool(demand.resources),
        ignores_usage=demand.ignores_usage,
    )


def parameters(plan: Plan, ids: NamedIds) -> Parameters:
    """Return the values of all parameters that a statement for this plan may have."""
    root_required = [frozenset({name}) for name in plan.request.root_required]
    values: Parameters = {
        "root_forbidden": known(plan.request.root_forbidden, ids.traits),
        "root_aggregates": known(plan.forbidden_root_aggregates, ids.aggregates),
        "sharing_trait": [ids.sharing_trait],
        **sets_parameters("root_required", root_required, ids.traits),
        **sets_parameters("tree_traits", plan.trait_sets, ids.traits),
    }
    for index, demand in enumerate(plan.demands):
        values |= {f"d{index}_{name}": value for name, value in _demand_parameters(demand, ids)}
    return values


def _demand_parameters(demand: Demand, ids: NamedIds) -> Iterator[tuple[str, Any]]:
    group = demand.group
    for index, (name, amount) in enumerate(demand.resources):
        yield f"class_{index}", ids.classes[name]
        yield f"amount_{index}", amount
    yield from sets_parameters("required", demand.required, ids.traits).items()
    yield from sets_parameters("member_of", group.member_of, ids.aggregates).items()
    yield "forbidden", known(group.forbidden, ids.traits)
    yield "forbidden_aggregates", known(group.forbidden_aggregates, ids.aggregates)
    if group.in_tree is not None:
        yield "root", ids.roots.get(group.in_tree)
