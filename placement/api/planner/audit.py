"""POST /planner/v1/audit: unknown consumers, overcommitted providers, odd rows."""

from datetime import timedelta
from typing import Any

from flask import Response

from placement.api.call import Call
from placement.api.fields import UUID, Array, Object, integer, text
from placement.api.routing import planner_route
from placement.services.bulk_read import AuditFindings, audit
from placement.store.checks.audit import Hits

MAX_MINUTES = 1000 * 366 * 24 * 60
"""A thousand years: the calendar of Python ends at some point."""

MAX_CONSUMERS = 100_000
"""As many fit into a body."""

OLDER_THAN_MIN = 60


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


ROUTES = (planner_route("POST", "/audit", show_audit, rule="audit", body=BODY),)
