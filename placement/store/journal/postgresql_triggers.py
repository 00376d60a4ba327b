"""The journal's triggers on PostgreSQL: one call per statement, whatever the number of its rows.

An UPDATE calls them once per row: to find the changes, a statement trigger would have to join old and new rows, which
takes longer than all the rest for the one row of a claim. A row that gets another id is recorded as deleted and
created, in the order of the updates.

Providers and consumers are looked up by key: PostgreSQL overestimates the rows of a transition table so much that a
plain join would scan all of both.
"""

from collections.abc import Iterator

from placement.store.journal.watched import (
    BEGAN,
    CHANGED,
    CREATED,
    DELETED,
    GENERATION,
    JOURNAL,
    PROVIDER,
    REQUEST_COLUMNS,
    REQUEST_SETTING,
    SEPARATOR,
    WATCHED,
    Watched,
)
from placement.store.trigger_set import Trigger, TriggerSet

_FUNCTION = f"""
DECLARE
    mark bigint := pg_current_xact_id()::text::bigint;
    oldest bigint := pg_snapshot_xmin(pg_current_snapshot())::text::bigint;
    moment timestamp := clock_timestamp() AT TIME ZONE 'UTC';
    said text[] := string_to_array(current_setting('{REQUEST_SETTING}', true), chr({ord(SEPARATOR)}));
BEGIN
    IF TG_OP = 'INSERT' THEN
        {{created}};
    ELSIF TG_OP = 'DELETE' THEN
        {{deleted}};
    ELSIF TG_OP = 'UPDATE' THEN
        {{changed}}
    ELSE
        INSERT INTO placement_journal (commit_mark, oldest_open, time, kind, action)
        VALUES (mark, oldest, moment, '{JOURNAL}', '{BEGAN}');
    END IF;
    RETURN NULL;
END
"""  # noqa: S608

_ONE_ROW = "(VALUES (1)) AS one"
"""The source to select OLD or NEW from."""
_OF_PROVIDER = (
    "LEFT JOIN LATERAL (SELECT uuid, root_provider_id FROM resource_providers WHERE id = {key} OFFSET 0) AS p ON true"
)
_OF_CONSUMER = (
    "LEFT JOIN LATERAL (SELECT project_id, user_id, consumer_type_id FROM consumers WHERE uuid = {key} "
    "OFFSET 0) AS c ON true"
)


def _recorded(watched: Watched, row: str, rows: str = _ONE_ROW) -> str:
    """Return the statement that records created or deleted rows."""
    was_made = row in {"n", "NEW"}
    columns = {name: f"{row}.{column}" for name, column in watched.copies.items()} | _looked_up(watched)
    side = "new" if was_made else "old"
    if watched.amount:
        columns[f"{side}_amount"] = f"{row}.{watched.amount}"
    if watched.shown:
        columns[f"{side}_row"] = _json(watched, row)
    action = f"'{CREATED}'" if was_made else f"'{DELETED}'"
    statement = _insert({"kind": f"'{watched.kind}'", "action": action} | columns, f"{rows} {_joins(watched, row)}")
    return statement if was_made else _ending(watched, DELETED, statement)


def _updated(watched: Watched) -> str:
    """Return the code that records an updated row: as deleted and created, or as changed in its values."""
    other = f"{_recorded(watched, 'OLD')}; {_recorded(watched, 'NEW')};"
    changed = f"ELSIF {_differ(watched.values)} THEN {_changed(watched)};" if watched.values else ""
    return f"IF {_differ(watched.identity)} THEN {other} {changed} END IF;"


def _changed(watched: Watched) -> str:
    columns = {name: f"NEW.{column}" for name, column in watched.copies.items()} | _looked_up(watched)
    kind = f"'{watched.kind}'"
    if watched.amount:
        columns |= {"old_amount": f"OLD.{watched.amount}", "new_amount": f"NEW.{watched.amount}"}
    if watched.shown:
        is_shown = _differ(watched.shown)
        for side, row in (("old_row", "OLD"), ("new_row", "NEW")):
            columns[side] = f"CASE WHEN {is_shown} THEN {_json(watched, row)} END"
        if watched.kind == PROVIDER:
            kind = f"CASE WHEN {is_shown} THEN '{PROVIDER}' ELSE '{GENERATION}' END"
    statement = _insert({"kind": kind, "action": f"'{CHANGED}'"} | columns, f"{_ONE_ROW} {_joins(watched, 'NEW')}")
    return _ending(watched, CHANGED, statement)


def _ending(watched: Watched, action: str, statement: str) -> str:
    """Have the statement that records the end of a name, if that is what it does, keep the name as well."""
    if not watched.ends_name(action):
        return statement
    name = "provider_uuid" if watched.kind == PROVIDER else f"old_row::json ->> '{watched.named}'"
    return (
        f"WITH ended AS ({statement} RETURNING id, kind, object_id, {name} AS name) "  # noqa: S608
        "INSERT INTO placement_former_names (journal_id, kind, object_id, name) "
        "SELECT id, kind, object_id, name FROM ended"
    )


def _looked_up(watched: Watched) -> dict[str, str]:
    columns: dict[str, str] = {}
    if watched.provider:
        columns |= {"provider_uuid": "p.uuid", "root_provider_id": "p.root_provider_id"}
    if watched.consumer:
        columns |= {name: f"c.{name}" for name in ("project_id", "user_id", "consumer_type_id")}
    return columns


def _joins(watched: Watched, row: str) -> str:
    """Return the joins that look up a row's provider and consumer."""
    joins = []
    if watched.provider:
        joins.append(_OF_PROVIDER.format(key=f"{row}.{watched.provider}"))
    if watched.consumer:
        joins.append(_OF_CONSUMER.format(key=f"{row}.{watched.consumer}"))
    return " ".join(joins)


def _json(watched: Watched, row: str) -> str:
    members = ", ".join(f"'{column}', {row}.{column}" for column in watched.shown)
    return f"json_build_object({members})::text"


def _differ(columns: tuple[str, ...]) -> str:
    return " OR ".join(f"NEW.{column} IS DISTINCT FROM OLD.{column}" for column in columns)


def _insert(columns: dict[str, str], source: str) -> str:
    said = {name: f"said[{number}]" for number, name in enumerate(REQUEST_COLUMNS, 1)}
    every = {"commit_mark": "mark", "oldest_open": "oldest", "time": "moment"} | columns | said
    return f"INSERT INTO placement_journal ({', '.join(every)}) SELECT {', '.join(every.values())} FROM {source}"  # noqa: S608


def _function(watched: Watched) -> str:
    created, deleted = _recorded(watched, "n", "new_rows AS n"), _recorded(watched, "o", "old_rows AS o")
    return _FUNCTION.format(created=created, deleted=deleted, changed=_updated(watched))


_EVENTS = (
    ("inserted", "INSERT", "REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT"),
    ("updated", "UPDATE", "FOR EACH ROW"),
    ("deleted", "DELETE", "REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT"),
    ("truncated", "TRUNCATE", "FOR EACH STATEMENT"),
)


def _triggers(watched: Watched) -> Iterator[Trigger]:
    for name, event, rows in _EVENTS:
        yield Trigger(
            f"placement_journal_{watched.table}_{name}",
            f"AFTER {event} ON {watched.table}",
            f"{rows} EXECUTE FUNCTION placement_journal_{watched.table}()",
        )


SET = TriggerSet(
    [trigger for watched in WATCHED for trigger in _triggers(watched)],
    {f"placement_journal_{watched.table}": _function(watched) for watched in WATCHED},
)
