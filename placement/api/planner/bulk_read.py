"""GET /planner/v1/inventory and POST /planner/v1/audit: all providers in one answer, and what is odd in the tables."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

import orjson
from flask import Response

from placement.api.call import JSON, Call, answer_in_pieces
from placement.api.fields import UUID, Array, Object, integer, text
from placement.api.inventories import AMOUNTS
from placement.api.resource_providers import FILTERS, provider_filter
from placement.api.routing import planner_route
from placement.services.bulk_read import AuditFindings, audit, read_inventory
from placement.store.bulk_read import BulkRead
from placement.store.checks.audit import MAX_MINUTES, OLDER_THAN_MIN, Hits

PROVIDERS_AT_ONCE = 500


def list_inventory(call: Call) -> Response:
    """Return everything about the providers that match the filters of GET /resource_providers.

    The data is one snapshot, read in a few statements; it is serialised while it is sent.
    """
    call.query.check(FILTERS.at(call.version))
    cloud = read_inventory(call.database, provider_filter(call.query, call.version))
    response = answer_in_pieces(call.request, _text(cloud), JSON)
    if cloud.journal is not None and call.server.settings.journal.enabled:
        response.headers["x-placement-journal"] = cloud.journal.text
    return response


def _text(cloud: BulkRead) -> Iterator[bytes]:
    yield b'{"providers":['
    for start in range(0, len(cloud.providers), PROVIDERS_AT_ONCE):
        portion = _shown(cloud, cloud.providers[start : start + PROVIDERS_AT_ONCE])
        yield (b"," if start else b"") + orjson.dumps(portion)[1:-1]
    yield b"]}"


def _shown(cloud: BulkRead, providers: Sequence[tuple[Any, ...]]) -> list[dict[str, Any]]:
    classes, traits = cloud.class_names, cloud.trait_names
    shown = []
    for id_, uuid, name, generation, parent, root in providers:
        stocks = cloud.stocks.get(id_, ())
        shown.append(
            {
                "uuid": uuid,
                "name": name,
                "generation": generation,
                "parent_provider_uuid": parent,
                "root_provider_uuid": root,
                "inventories": {classes[row[0]]: dict(zip(AMOUNTS, row[1:7], strict=True)) for row in stocks},
                "usages": {classes[row[0]]: row[7] for row in stocks},
                "traits": sorted([traits[trait] for trait in cloud.traits.get(id_, ())]),
                "aggregates": sorted(cloud.aggregates.get(id_, ())),
            }
        )
    return shown


MAX_CONSUMERS = 100_000
"""As many fit into a body."""

BODY = Object(
    {
        "known_consumers?": Array(UUID, shortest=1, longest=MAX_CONSUMERS),
        "consumer_type?": text(),
        "older_than_minutes?": integer(minimum=0, maximum=MAX_MINUTES, default=OLDER_THAN_MIN),
    }
)
"""Without known consumers, none is reported as unknown."""


def show_audit(call: Call) -> Response:
    """Return everything that an audit finds."""
    body = call.document(BODY)
    findings = audit(
        call.database,
        body.get("known_consumers"),
        consumer_type=body.get("consumer_type"),
        older_than=timedelta(minutes=body.get("older_than_minutes", OLDER_THAN_MIN)),
    )
    return call.json(audit_json(findings))


def audit_json(findings: AuditFindings) -> dict[str, Any]:
    """Return the findings as JSON."""
    return {
        "unknown_consumers": [
            {
                "consumer_uuid": consumer.uuid,
                "consumer_type": consumer.consumer_type,
                "project_id": consumer.project,
                "allocations": {
                    provider: {"name": consumer.names[provider], "resources": amounts}
                    for provider, amounts in consumer.held.items()
                },
            }
            for consumer in findings.unknown_consumers
        ],
        "overcommitted": [
            {
                "provider_uuid": row.provider,
                "name": row.name,
                "resource_class": row.resource_class,
                "used": row.used,
                "capacity": row.capacity,
            }
            for row in findings.overcommitted
        ],
        "odd_rows": list(findings.odd_rows),
        "consumers_without_allocations": _hits(findings.empty_consumers),
        "aggregates_without_members": _hits(findings.empty_aggregates),
    }


def _hits(hits: Hits) -> dict[str, Any]:
    return {"total": hits.total, "examples": list(hits.examples)}


ROUTES = (
    planner_route("GET", "/inventory", list_inventory, rule="inventory:list", query=FILTERS),
    planner_route("POST", "/audit", show_audit, rule="audit", body=BODY),
)
