"""Use cases of usages."""

from collections import Counter, defaultdict

from placement.domain.inventory import ProviderUsage, TypeUsage
from placement.domain.quantities import ResourceAmounts
from placement.errors import ProviderNotFound
from placement.store import allocations as store
from placement.store.connection.unit_of_work import Transaction, reads, reads_once


@reads_once
def provider_usage(tx: Transaction, provider_uuid: str) -> ProviderUsage:
    """Return the usage of each class that a provider has inventory of."""
    rows = store.usage_of_provider(tx, provider_uuid)
    if not rows:
        raise ProviderNotFound(provider_uuid)
    used = {class_id: amount for _generation, class_id, amount in rows if class_id is not None}
    names = tx.names.classes.names(tx.connection, used)
    return ProviderUsage(rows[0][0], {names[class_id]: amount for class_id, amount in used.items()})


@reads
def project_usage(tx: Transaction, project_id: str, user_id: str | None = None) -> ResourceAmounts:
    """Return everything that a project, or one of its users, holds."""
    rows = store.usage_of_project(tx, project_id, user_id)
    names = tx.names.classes.names(tx.connection, {class_id for _, class_id, _ in rows})
    amounts: Counter[str] = Counter()
    for _, class_id, amount in rows:
        amounts[names[class_id]] += amount
    return amounts


@reads
def project_usage_by_type(tx: Transaction, project_id: str, user_id: str | None = None) -> dict[str | None, TypeUsage]:
    """Return the same by consumer type; None stands for consumers without one."""
    rows = store.usage_of_project(tx, project_id, user_id)
    counts = store.consumers_of_project(tx, project_id, user_id)
    names = tx.names.classes.names(tx.connection, {class_id for _, class_id, _ in rows})
    by_type: dict[str | None, dict[str, int]] = defaultdict(dict)
    for type_, class_id, amount in rows:
        by_type[type_][names[class_id]] = amount
    return {type_: TypeUsage(amounts, counts[type_]) for type_, amounts in by_type.items()}
