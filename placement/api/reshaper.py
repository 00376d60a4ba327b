"""POST /reshaper: move inventories between providers together with their allocations."""

from flask import Response

from placement.api.allocations import UUID_KEY, WithGeneration, WithMappings, WithType, by_consumer, claims_of
from placement.api.call import Call
from placement.api.fields import Mapping, Object, Schema
from placement.api.inventories import AllInventories, inventory_of
from placement.api.routing import Route
from placement.api.versions import Versioned
from placement.services import reshaper as service
from placement.services.reshaper import ReshapedInventories


class Reshape(Schema):
    """The body from 1.30 to 1.33."""

    inventories = Mapping(UUID_KEY, Object(AllInventories), smallest=1)
    allocations = by_consumer(WithGeneration)


class ReshapeWithMappings(Reshape):
    """The body from 1.34 to 1.37."""

    allocations = by_consumer(WithMappings)


class ReshapeWithTypes(Reshape):
    """The body from 1.38 on."""

    allocations = by_consumer(WithType)


SCHEMAS: Versioned[Schema] = Versioned(
    {(1, 30): Reshape(), (1, 34): ReshapeWithMappings(), (1, 38): ReshapeWithTypes()}
)


def reshape(call: Call) -> Response:
    """Replace inventories and allocations together, all or none."""
    body = call.body(SCHEMAS)
    wanted = {
        uuid: ReshapedInventories(
            entry["resource_provider_generation"],
            {name: inventory_of(amounts) for name, amounts in entry["inventories"].items()},
        )
        for uuid, entry in body["inventories"].items()
    }
    locks = call.server.settings.locks_for_all
    service.reshape(call.database, wanted, claims_of(call, body["allocations"]), locks=locks)
    return call.empty()


ROUTES = (Route("POST", "/reshaper", reshape, rule="placement:reshaper:reshape", since=(1, 30), body=SCHEMAS),)
