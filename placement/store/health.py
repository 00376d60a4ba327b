"""The smallest question to the database that only a usable one answers."""

from sqlalchemy import select

from placement.store.tables import provider_usages, resource_classes
from placement.store.unit_of_work import Transaction


def has_schema(tx: Transaction) -> bool:
    """Tell whether the tables are there and the standard names in them."""
    tx.execute(select(provider_usages.c.used).limit(1))
    return tx.execute(select(resource_classes.c.id).limit(1)).first() is not None
