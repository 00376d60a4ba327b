"""Journal rows as JSON, without the fields that a row does not have."""

from datetime import UTC, datetime
from typing import Any

from placement.errors import Invalid
from placement.store.journal.reading import Entry


def entry_json(entry: Entry) -> dict[str, Any]:
    """Return a row as clients see it."""
    shown = {
        "id": entry.id,
        "time": time_text(entry.time),
        "kind": entry.kind,
        "action": entry.action,
        "provider_uuid": entry.provider_uuid,
        "consumer_uuid": entry.consumer_uuid,
        "project_id": entry.project,
        "user_id": entry.user,
        "consumer_type": entry.consumer_type,
        "resource_class": entry.resource_class,
        "name": entry.name,
        "old_amount": entry.old_amount,
        "new_amount": entry.new_amount,
        "generation": entry.generation,
        "old": entry.old,
        "new": entry.new,
        "request_id": entry.request_id,
        "by_user_id": entry.by_user or None,
        "by_project_id": entry.by_project or None,
        "route": entry.route,
    }
    return {name: value for name, value in shown.items() if value is not None}


def time_text(moment: datetime) -> str:
    """Return a journal timestamp, which is naive UTC, in ISO 8601."""
    return moment.isoformat(timespec="milliseconds") + "Z"


def moment_of(text: str) -> datetime:
    """Parse an ISO 8601 time to naive UTC, as in the tables; without an offset it is taken as UTC.

    Raises:
        Invalid: the text is not a time in ISO 8601.
    """
    try:
        moment = datetime.fromisoformat(text)
        return moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError) as error:
        hint = " In an address, + is written %2B." if " " in text else ""
        raise Invalid(f"'{text[:100]}' is not a time in ISO 8601.{hint}") from error
