"""/usages and /resource_providers/{uuid}/usages: how much is in use."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from flask import Response

from placement.api.call import Call
from placement.api.fields import text
from placement.api.routing import Route
from placement.api.versions import Versioned
from placement.domain.inventory import TypeUsage
from placement.domain.names import MAX_NAME_LENGTH, NAME_PATTERN, UNTYPED
from placement.services import inventories as service

RULE, PROVIDER_RULE = "placement:usages", "placement:resource_providers:usages"
ALL = "all"

_ID = text(shortest=1, longest=255)
# Only the beginning of "all" is anchored in the reference's pattern.
_TYPE = text(pattern=f"{NAME_PATTERN}$|^{ALL}.*|^{UNTYPED}", shortest=1, longest=MAX_NAME_LENGTH)
_RULES = Versioned(
    {
        (1, 9): {"project_id": _ID, "user_id": _ID},
        (1, 38): {"project_id": _ID, "user_id": _ID, "consumer_type": _TYPE},
    }
)


def show_provider(call: Call, uuid: str) -> Response:
    """Return a provider's usage of each class that it has inventory of."""
    usage = service.provider_usage(call.database, uuid)
    return call.json({"resource_provider_generation": usage.generation, "usages": usage.amounts})


def show_project(call: Call) -> Response:
    """Return the usage of a project, or of one user in it."""
    project_id, user_id = _whose(call)
    return call.json({"usages": service.project_usage(call.database, project_id, user_id)})


def show_project_by_type(call: Call) -> Response:
    """Return the usage of a project, or of one user in it, by consumer type (from 1.38)."""
    project_id, user_id = _whose(call)
    usage = service.project_usage_by_type(call.database, project_id, user_id)
    return call.json({"usages": _shown(usage, call.query.last("consumer_type"))})


def _whose(call: Call) -> tuple[str, str | None]:
    """Return project and user from the query, once the caller is authorized to see that project."""
    project_id = call.query.last("project_id")
    call.authorize(RULE, project_id=project_id)
    call.query.check(_RULES.at(call.version), required=("project_id",))
    assert project_id is not None
    return project_id, call.query.last("user_id")


def _shown(usage: Mapping[str | None, TypeUsage], consumer_type: str | None) -> dict[str, dict[str, int]]:
    """Return usage keyed by type name: one type, all types merged, or each of them."""
    if consumer_type == ALL:
        return {ALL: _merged(usage)} if usage else {}
    return {
        type_ or UNTYPED: {**of_type.amounts, "consumer_count": of_type.consumers}
        for type_, of_type in usage.items()
        if consumer_type in (None, type_ or UNTYPED)
    }


def _merged(usage: Mapping[str | None, TypeUsage]) -> dict[str, int]:
    """Sum over all types; consumer counts add up because a consumer has one type."""
    amounts: Counter[str] = Counter()
    for of_type in usage.values():
        amounts.update(of_type.amounts)
    return {**amounts, "consumer_count": sum(of_type.consumers for of_type in usage.values())}


_USAGES = Route("GET", "/usages", show_project, view_rules=(RULE,), since=(1, 9), answers_json=True, query=_RULES)
ROUTES = (
    Route("GET", "/resource_providers/<uuid>/usages", show_provider, rule=PROVIDER_RULE, answers_json=True),
    # The policy check needs the project in the query.
    replace(_USAGES, until=(1, 37)),
    replace(_USAGES, view=show_project_by_type, since=(1, 38)),
)
