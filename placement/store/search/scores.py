"""What the trees of a cloud have and use in all, by root: the sums that tell a good tree from a better one."""

from collections.abc import Sequence
from functools import lru_cache

from sqlalchemy import BigInteger, Double, FromClause, Integer, and_, bindparam, case, cast, func, select

from placement.store.connection.kept import Kept
from placement.store.connection.unit_of_work import Transaction
from placement.store.kept_usage.usage_source import usage_source
from placement.store.tables import inventories, provider_usages, resource_providers
from placement.store.whole_numbers import whole

TreeSums = tuple[int, ...]
"""The root of a tree, then its capacity of each class, then its use of each class."""

ABSENT = -1
"""The id of a class that does not exist: nobody has any of it."""


def tree_sums(tx: Transaction, classes: Sequence[int], others: Sequence[int]) -> list[TreeSums]:
    """Return the sums of every tree that has an inventory of any class in ``classes`` or ``others``, in any order.

    The capacity of an inventory is whole, as ``domain.inventory`` has it; what is reserved does not count. Conditions
    on trees are left to whoever reads the best of them: here they would cost more than all sums.

    Args:
        tx: where to read.
        classes: the ids of the classes to sum up; ABSENT for one that does not exist.
        others: further classes whose owners are to be found.
    """
    numbered = {f"class_{index}": class_id for index, class_id in enumerate(classes)}
    statement = _sums(len(classes), keeps_usage=tx.database.keeps_usage)
    return tx.tuples(statement, {**numbered, "any_class": sorted({*classes, *others})})


@lru_cache(maxsize=128)
def _sums(classes: int, *, keeps_usage: bool) -> Kept:
    has = (_kept_stocks() if keeps_usage else _joined_stocks()).c
    portions = [
        case((has.resource_class_id == bindparam(f"class_{index}", type_=Integer, literal_execute=True), amount))
        for amount in (has.capacity, cast(has.used, Double))  # sums of floats are cheap
        for index in range(classes)
    ]
    columns = [cast(func.coalesce(func.sum(portion), 0), BigInteger) for portion in portions]
    return Kept(
        select(has.root_provider_id, *columns)
        .where(has.resource_class_id.in_(bindparam("any_class", expanding=True, literal_execute=True)))
        .group_by(has.root_provider_id)
    )


def _kept_stocks() -> FromClause:
    return select(provider_usages).where(provider_usages.c.capacity.is_not(None)).subquery()


def _joined_stocks() -> FromClause:
    """Return what the other one has, for a database that cannot keep it: joins take most of the time that sums take."""
    owner, has = resource_providers.c, inventories.c
    usage = usage_source(keeps_usage=False)
    on_spot = and_(
        usage.c.resource_provider_id == has.resource_provider_id, usage.c.resource_class_id == has.resource_class_id
    )
    capacity = whole((has.total - has.reserved) * has.allocation_ratio)
    return (
        select(owner.root_provider_id, has.resource_class_id, capacity.label("capacity"), usage.c.used)
        .select_from(inventories.join(resource_providers, owner.id == has.resource_provider_id))
        .outerjoin(usage, on_spot)
        .subquery()
    )
