"""POST /reshaper: move inventories between providers together with their allocations."""

from flask import Response

from placement.api.allocations import ENTRIES, UUID_KEY, by_consumer, claims_of
from placement.api.call import Call
from placement.api.fields import Map, Object
from placement.api.inventories import ALL as ALL_INVENTORIES
from placement.api.inventories import inventory_of
from placement.api.routing import Route
from placement.api.versions import Versioned
from placement.services import reshaper as service
from placement.services.reshaper import ReshapedInventories

SCHEMAS = Versioned(
    {
        max(since, (1, 30)): Object(
            {"inventories": Map(UUID_KEY, ALL_INVENTORIES, smallest=1), "allocations": by_consumer(since)}
        )
        for since in ENTRIES
        if since > (1, 13)
    }
)


def reshape(call: Call) -> Response:
    """Replace inventories and allocations together, all or none."""
    body = call.body(SCHEMAS)
    reshaped = {
        uuid: ReshapedInventories(
            entry["resource_provider_generation"],
            {name: inventory_of(amounts) for name, amounts in entry["inventories"].items()},
        )
        for uuid, entry in body["inventories"].items()
    }
    locks = call.server.locks
    service.reshape(call.database, reshaped, claims_of(call, body["allocations"]), locks=locks)
    return call.empty()


ROUTES = (Route("POST", "/reshaper", reshape, rule="placement:reshaper:reshape", since=(1, 30), body=SCHEMAS),)
