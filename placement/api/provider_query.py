"""What routes of providers have in common: the query string that selects them, and the parts below one provider."""

from typing import Any

from placement.api.call import Call
from placement.api.fields import Integer
from placement.api.filters import parse_member_of, parse_required, parse_resources
from placement.api.query import ANY, Query, ValueRule
from placement.api.validation import Schema
from placement.api.versions import Version, Versioned
from placement.domain.provider import ProviderFilter
from placement.errors import Invalid
from placement.services.providers import provider

LAST_UUID = ValueRule(uuid=True, only_last_counts=True)
_OLDEST = {"name": ANY, "uuid": LAST_UUID}
FILTERS: Versioned[dict[str, ValueRule]] = Versioned(
    {
        (1, 0): _OLDEST,
        (1, 3): _OLDEST | {"member_of": ANY},
        (1, 4): _OLDEST | {"member_of": ANY, "resources": ANY},
        (1, 14): _OLDEST | {"member_of": ANY, "resources": ANY, "in_tree": LAST_UUID},
        (1, 18): _OLDEST | {"member_of": ANY, "resources": ANY, "in_tree": LAST_UUID, "required": ANY},
    }
)

ONE_PROVIDER = "/resource_providers/<uuid>"


def provider_filter(query: Query, version: Version) -> ProviderFilter:
    """Return the filter that an already checked query string describes.

    Raises:
        Invalid: a value is malformed, or uses syntax that the microversion does not have.
    """
    resources = query.last("resources")
    member_of, forbidden_aggregates = parse_member_of(query.every("member_of"), version)
    required, forbidden = parse_required(query.every("required"), version)
    return ProviderFilter(
        # As in the reference, an empty name does not filter.
        name=query.last("name") or None,
        uuid=query.last("uuid"),
        in_tree=query.last("in_tree"),
        resources={} if resources is None else parse_resources(resources),
        required=required,
        forbidden=forbidden,
        member_of=member_of,
        forbidden_aggregates=forbidden_aggregates,
    )


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
