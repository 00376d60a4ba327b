"""What the REST resources below /resource_providers/{uuid} have in common."""

from typing import Any

from placement.api.call import Call
from placement.api.fields import Integer
from placement.api.validation import Schema
from placement.api.versions import Versioned
from placement.errors import Invalid
from placement.services.providers import provider

ONE = "/resource_providers/<uuid>"


def path_of(uuid: str, *below: str) -> str:
    """Return the path of a provider, or of something below it."""
    return "/".join(("/resource_providers", uuid, *below))


def generation(*, required: bool = True) -> Integer:
    """Return a field for the generation at which the client saw the provider."""
    return Integer(required=required)


def body_for(call: Call, uuid: str, schemas: Versioned[Schema] | Schema) -> Any:
    """Return the validated body of a write to a provider; a missing provider is reported before an invalid body."""
    try:
        return call.body(schemas)
    except Invalid:
        provider(call.database, uuid)
        raise
