"""Journal rows as CADF events (DMTF DSP0262), in the form in which OpenStack services send them."""

from typing import Any
from uuid import NAMESPACE_URL, uuid5

from placement.api.planner.journal_json import entry_json
from placement.store.journal.reading import Entry
from placement.store.journal.watched import ALLOCATION, CHANGED, CONSUMER, CREATED, DELETED, GENERATION, JOURNAL

EVENT = "http://schemas.dmtf.org/cloud/audit/1.0/event"
SERVICE = "service/placement"
USER = "service/security/account/user"
UNKNOWN = "unknown"

_ACTIONS = {CREATED: "create", CHANGED: "update", DELETED: "delete"}
_OF_CONSUMERS = frozenset({ALLOCATION, CONSUMER})
_UNTOLD = frozenset({GENERATION, JOURNAL})
"""Generations only change along with something else or carry no information; the journal itself is not a resource."""


def cadf_event(entry: Entry) -> dict[str, Any] | None:
    """Return a row's event, or None if it has none. The same row always yields the same event, including its id."""
    if entry.kind in _UNTOLD:
        return None
    return {
        "typeURI": EVENT,
        "eventType": "activity",
        "id": str(uuid5(NAMESPACE_URL, f"placement:journal:{entry.id}:{entry.time.isoformat()}")),
        "eventTime": entry.time.isoformat(timespec="microseconds") + "+00:00",
        "action": _ACTIONS[entry.action],
        "outcome": "success",
        "initiator": _initiator(entry),
        "target": _target(entry),
        "observer": {"typeURI": SERVICE, "id": "placement"},
        "attachments": [{"name": "journal", "contentType": "application/json", "content": entry_json(entry)}],
    }


def _initiator(entry: Entry) -> dict[str, str]:
    """Return the initiator; it is unknown if the change did not come from a request to this server."""
    if entry.request_id is None:
        return {"typeURI": UNKNOWN, "id": UNKNOWN}
    user = entry.by_user or UNKNOWN
    who = {"typeURI": USER, "id": user, "user_id": user, "request_id": entry.request_id}
    return who | {"project_id": entry.by_project} if entry.by_project else who


def _target(entry: Entry) -> dict[str, str]:
    of_consumer = entry.kind in _OF_CONSUMERS
    uuid = entry.consumer_uuid if of_consumer else entry.provider_uuid
    name = entry.resource_class or entry.name
    target = {"typeURI": f"{SERVICE}/{entry.kind}", "id": uuid or UNKNOWN}
    return target | {"name": name} if name else target
