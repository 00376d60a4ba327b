"""From a plan to the SQL that narrows: for each kind of demand the providers that can serve it alone.

One statement for all kinds (UNION ALL), made once per *shape* of request - how many conditions of which sort - and
kept; the values are bound. Everything a provider can be judged by alone is judged here: capacity, unit rules, traits,
aggregates, tree; what depends on others is left to the search.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Double,
    Integer,
    Select,
    and_,
    bindparam,
    case,
    cast,
    false,
    func,
    literal_column,
    or_,
    select,
    true,
    union_all,
)

from placement.domain.search_plan import Kind, Plan
from placement.store.connection.kept import Kept
from placement.store.connection.memory import remembered
from placement.store.kept_usage.usage_source import usage_source
from placement.store.search.any_of import (
    NO_SETS,
    SetsShape,
    has_one_of_each,
    has_trait,
    is_in_one_of_each,
    is_member,
    known,
    sets_parameters,
    sets_shape,
)
from placement.store.search.names import NamedIds
from placement.store.search.ranges import Scope
from placement.store.search.roots import RootShape, root_conditions
from placement.store.tables import inventories, resource_providers
from placement.store.whole_numbers import whole

Parameters = dict[str, Any]
Condition = ColumnElement[bool]

# Numbers the planner is to know.
NOTHING: Any = literal_column("0", Integer)
ONE: Any = literal_column("1", Integer)
MILLION: Any = literal_column("1000000.0", Double)


@dataclass(frozen=True, slots=True)
class KindShape:
    """What the conditions of a kind are made of. ``contended`` has a class's place in the plan's list, or None."""

    granular: bool
    contended: tuple[int | None, ...]
    required: SetsShape
    forbidden: bool
    member_of: SetsShape
    forbidden_aggregates: bool
    in_tree: bool
    regardless: bool = False

    @property
    def conditions(self) -> int:
        """About how many conditions that makes: the weight of its statement."""
        return 1 + len(self.contended) + self.required.several + self.member_of.several


@dataclass(frozen=True, slots=True)
class Shape:
    """What a narrowing statement is made of.

    ``sharing`` asks for providers that share instead of the trees' own; ``weighed`` for how many times what a kind
    asks fits on each provider, in millionths; ``with_parents`` for the parent of each.
    """

    kinds: tuple[KindShape, ...]
    root: RootShape
    contended: int
    scope: Scope
    sharing: bool
    keeps_usage: bool
    weighed: bool
    with_parents: bool = False

    @property
    def conditions(self) -> int:
        """About how many conditions that makes: the weight of its statement."""
        of_root = self.root.required.several + self.root.tree_traits.several
        return sum(kind.conditions + of_root for kind in self.kinds)


def kind_shape(plan: Plan, kind: Kind) -> KindShape:
    """Return the shape of one kind of a plan."""
    group = kind.group
    return KindShape(
        granular=group.is_granular,
        contended=tuple(
            plan.contended.index(name) if name in plan.contended else None for name, _amount in kind.resources
        ),
        # The unsuffixed group meets its traits together, which is for the search to see.
        required=sets_shape(group.required) if group.is_granular else NO_SETS,
        forbidden=bool(group.forbidden),
        member_of=sets_shape(group.member_of),
        forbidden_aggregates=bool(group.forbidden_aggregates),
        # A granular group without resources is found in any tree, as in the reference.
        in_tree=group.in_tree is not None and bool(kind.resources),
        regardless=kind.regardless,
    )


def parameters(plan: Plan, ids: NamedIds) -> Parameters:
    """Return the values of everything that a statement for this plan may bind."""
    root_required = [frozenset({name}) for name in plan.request.root_required]
    values: Parameters = {
        "root_forbidden": known(plan.request.root_forbidden, ids.traits),
        "root_aggregates": known(plan.forbidden_root_aggregates, ids.aggregates),
        "sharing_trait": [ids.sharing_trait],
        **sets_parameters("root_required", root_required, ids.traits),
        **sets_parameters("tree_traits", plan.trait_sets, ids.traits),
    }
    for index, kind in enumerate(plan.kinds):
        values |= {f"k{index}_{name}": value for name, value in _kind_parameters(kind, ids)}
    return values


def _kind_parameters(kind: Kind, ids: NamedIds) -> Iterator[tuple[str, Any]]:
    group = kind.group
    for index, (name, amount) in enumerate(kind.resources):
        yield f"class_{index}", ids.classes[name]
        yield f"amount_{index}", amount
    yield from sets_parameters("required", group.required, ids.traits).items()
    yield from sets_parameters("member_of", group.member_of, ids.aggregates).items()
    yield "forbidden", known(group.forbidden, ids.traits)
    yield "forbidden_aggregates", known(group.forbidden_aggregates, ids.aggregates)
    if group.in_tree is not None:
        yield "root", ids.roots.get(group.in_tree)


def _weight(shape: Shape, only: tuple[int, ...] | None = None) -> int:  # noqa: ARG001 - called as narrowing() is
    return shape.conditions


@remembered(_weight)
def narrowing(shape: Shape, only: tuple[int, ...] | None = None) -> Kept:
    """Return the statement: rows of (kind, root id, provider id, room of each contended class, parent, times it fits).

    The parent is left out unless ``with_parents``, and how many times what is asked fits where providers are not
    ``weighed``. That is summed over the classes, in whole millionths, still as a float: sums of these are exact, and
    the same in whatever order rows come. ``only`` says which kinds are asked about.
    """
    selects = [_kind_select(shape, index) for index in (range(len(shape.kinds)) if only is None else only)]
    return Kept(selects[0] if len(selects) == 1 else union_all(*selects))


def _kind_select(shape: Shape, index: int) -> Select[Any]:
    kind = shape.kinds[index]
    provider = resource_providers.alias(f"rp{index}")
    usage = usage_source(keeps_usage=shape.keeps_usage)
    source: Any = provider
    conditions: list[Condition] = []
    rooms: list[Any] = [literal_column("0.0")] * shape.contended
    times: list[Any] = []
    for position, place in enumerate(kind.contended):
        inventory = inventories.alias(f"inv{index}_{position}")
        used_rows = usage.alias(f"use{index}_{position}")
        class_id = bindparam(f"k{index}_class_{position}", type_=Integer, literal_execute=True)
        amount = bindparam(f"k{index}_amount_{position}", type_=BigInteger)
        source = source.join(
            inventory,
            and_(inventory.c.resource_provider_id == provider.c.id, inventory.c.resource_class_id == class_id),
            # Who has one class has the next, which PostgreSQL's planner does not expect: it multiplies the shares of
            # providers that have each. A row without inventory does not fit, so an outer join finds the same.
            isouter=shape.scope is Scope.ALL and position > 0,
        ).outerjoin(
            used_rows,
            and_(used_rows.c.resource_provider_id == provider.c.id, used_rows.c.resource_class_id == class_id),
        )
        left = _capacity(inventory) - func.coalesce(used_rows.c.used, NOTHING)
        fits = _capacity(inventory) > NOTHING if kind.regardless else _fits(inventory, left, amount)
        conditions.append(_guessed_as_half(fits) if shape.scope is Scope.ALL else fits)
        times.append(whole(cast(left, Double) * MILLION / cast(amount, Double)))
        if place is not None:
            rooms[place] = case((left < inventory.c.max_unit, left), else_=inventory.c.max_unit)
    conditions += _provider_conditions(shape, index, provider)
    weights: list[Any] = [provider.c.parent_provider_id] if shape.with_parents else []
    if shape.weighed:
        weights.append(sum(times[1:], start=times[0]) if times else literal_column("0.0"))
    return (
        select(literal_column(str(index)), provider.c.root_provider_id, provider.c.id, *rooms, *weights)
        .select_from(source)
        .where(*conditions)
    )


def _capacity(inventory: Any) -> Any:
    return (inventory.c.total - inventory.c.reserved) * inventory.c.allocation_ratio


def _fits(inventory: Any, left: ColumnElement[Any], amount: Any) -> Condition:
    return and_(
        amount <= left,
        inventory.c.min_unit <= amount,
        inventory.c.max_unit >= amount,
        # Said twice for PostgreSQL's planner: of the modulo alone it expects one row in two hundred, and then joins
        # thousands of rows one by one.
        or_(inventory.c.step_size == ONE, amount % inventory.c.step_size == NOTHING),
    )


def _guessed_as_half(condition: Condition) -> Condition:
    """Say a condition so that PostgreSQL's planner expects every other row to meet it.

    What it expects of the parts is multiplied and far too little in a whole cloud, which most rows meet.
    """
    return case((condition, true()), else_=false())


def _provider_conditions(shape: Shape, index: int, provider: Any) -> list[Condition]:
    kind = shape.kinds[index]
    prefix = f"k{index}_"
    conditions: list[Condition] = []
    if kind.required != NO_SETS:
        conditions.append(has_one_of_each(provider.c.id, kind.required, f"{prefix}required"))
    if kind.forbidden:
        conditions.append(~has_trait(provider.c.id, f"{prefix}forbidden"))
    if kind.forbidden_aggregates:
        conditions.append(~is_member(provider.c.id, f"{prefix}forbidden_aggregates"))
    if kind.member_of != NO_SETS:
        conditions.append(_membership(shape, kind, provider, f"{prefix}member_of"))
    if kind.in_tree:
        conditions.append(provider.c.root_provider_id == bindparam(f"{prefix}root"))
    if shape.sharing:
        conditions.append(has_trait(provider.c.id, "sharing_trait"))
    else:
        conditions += root_conditions(shape.root, provider.c.root_provider_id, scope=shape.scope)
    return conditions


def _membership(shape: Shape, kind: KindShape, provider: Any, name: str) -> Condition:
    """Membership in each of the sets; for the unsuffixed group a root's membership spans its tree."""
    own = is_in_one_of_each(provider.c.id, kind.member_of, name)
    if kind.granular or shape.sharing:
        return own
    return or_(own, is_in_one_of_each(provider.c.root_provider_id, kind.member_of, name))
