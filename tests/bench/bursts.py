"""Changes a thousand hosts at once, as requests would, for benchmarks of what follows the journal."""

from random import Random

from flask import Flask
from sqlalchemy import TextClause, bindparam, text

from placement.domain.identity import CURRENT_ORIGIN, Origin

BURST, BURSTS = 1000, 9
_ROOTS = text("SELECT id FROM resource_providers WHERE parent_provider_id IS NULL ORDER BY id")
_BELOW = text("SELECT id FROM resource_providers WHERE root_provider_id IN :roots").bindparams(
    bindparam("roots", expanding=True)
)
_SOME = "resource_class_id = 0 AND resource_provider_id IN :providers"
_PROVIDERS = bindparam("providers", expanding=True)
RESERVE = text(f"UPDATE inventories SET reserved = (resource_provider_id * 7 + :number) % 29 WHERE {_SOME}").bindparams(
    _PROVIDERS
)
USE = text(
    "INSERT INTO allocations (resource_provider_id, resource_class_id, consumer_id, used) "
    f"SELECT resource_provider_id, 0, 'burst', 1 FROM inventories WHERE :number >= 0 AND {_SOME}"
).bindparams(_PROVIDERS)
_BY_REQUESTS = Origin("req-burst", "admin", "admin", "PUT /somewhere")


def burst(app: Flask, change: TextClause, number: int) -> None:
    """Change random hosts, chosen by the number; the journal attributes the change to a request, as in operation."""
    CURRENT_ORIGIN.set(_BY_REQUESTS)
    with app.extensions["placement"].database.writer.begin() as connection:
        roots = connection.scalars(_ROOTS).all()
        changed = Random(number).sample(roots, min(BURST, len(roots)))
        providers = connection.scalars(_BELOW, {"roots": changed}).all()
        connection.execute(change, {"providers": providers, "number": number})
    CURRENT_ORIGIN.set(None)
