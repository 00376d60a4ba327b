"""The journal's triggers on PostgreSQL: one call for each statement, whatever the number of its rows.

What is looked up for a row is looked up by its key: of a set of rows PostgreSQL expects so many that it would read all
providers and consumers.
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
    moment timestamp := clock_timestamp() AT TIME ZONE 'UTC';
    said text[] := string_to_array(current_setting('{REQUEST_SETTING}', true), chr({ord(SEPARATOR)}));
BEGIN
    IF TG_OP = 'INSERT' THEN
        {{created}};
    ELSIF TG_OP = 'DELETE' THEN
        {{deleted}};
    ELSIF TG_OP = 'UPDATE' THEN
        {{changed}};
    ELSE
        INSERT INTO placement_journal (commit_mark, time, kind, action) VALUES (mark, moment, '{JOURNAL}', '{BEGAN}');
    END IF;
    RETURN NULL;
END
"""  # noqa: S608

_OF_PROVIDER = (
    "LEFT JOIN LATERAL (SELECT uuid, root_provider_id FROM resource_providers WHERE id = {key} OFFSET 0) AS p ON true"
)
_OF_CONSUMER = (
    "LEFT JOIN LATERAL (SELECT project_id, user_id, consumer_type_id FROM consumers WHERE uuid = {key} "
    "OFFSET 0) AS c ON true"
)


def _recorded(watched: Watched, row: str) -> str:
    """Return the statement that records rows that were made, or deleted."""
    was_made = row == "n"
    columns = {name: f"{row}.{column}" for name, column in watched.copies.items()} | _looked_up(watched)
    side = "new" if was_made else "old"
    if watched.amount:
        columns[f"{side}_amount"] = f"{row}.{watched.amount}"
    if watched.shown:
        columns[f"{side}_row"] = _json(watched, row)
    action = f"'{CREATED}'" if was_made else f"'{DELETED}'"
    source = f"{side}_rows AS {row} {_joins(watched, row + '.{0}')}"
    return _insert({"kind": f"'{watched.kind}'", "action": action} | columns, source)


def _changed(watched: Watched) -> str:
    """Return the statement that records the rows of an UPDATE of which something that counts was changed."""
    either = "CASE WHEN n.{0} IS NULL THEN o.{1} ELSE n.{1} END"
    key = watched.identity[0]
    columns = {name: either.format(key, column) for name, column in watched.copies.items()} | _looked_up(watched)
    kind = f"'{watched.kind}'"
    if watched.amount:
        columns |= {"old_amount": f"o.{watched.amount}", "new_amount": f"n.{watched.amount}"}
    if watched.shown:
        is_shown = _differ(watched.shown)
        for side, row in (("old_row", "o"), ("new_row", "n")):
            columns[side] = f"CASE WHEN {row}.{key} IS NOT NULL AND ({is_shown}) THEN {_json(watched, row)} END"
        if watched.kind == PROVIDER:
            kind = f"CASE WHEN {is_shown} THEN '{PROVIDER}' ELSE '{GENERATION}' END"
    action = f"CASE WHEN n.{key} IS NULL THEN '{DELETED}' WHEN o.{key} IS NULL THEN '{CREATED}' ELSE '{CHANGED}' END"
    same = " AND ".join(f"n.{column} = o.{column}" for column in watched.identity)
    source = (
        f"old_rows AS o FULL JOIN new_rows AS n ON {same} {_joins(watched, 'coalesce(n.{0}, o.{0})')} "
        f"WHERE {_differ((key, *watched.values))} ORDER BY n.{key} IS NOT NULL"
    )
    return _insert({"kind": kind, "action": action} | columns, source)


def _looked_up(watched: Watched) -> dict[str, str]:
    columns: dict[str, str] = {}
    if watched.provider:
        columns |= {"provider_uuid": "p.uuid", "root_provider_id": "p.root_provider_id"}
    if watched.consumer:
        columns |= {name: f"c.{name}" for name in ("project_id", "user_id", "consumer_type_id")}
    return columns


def _joins(watched: Watched, key: str) -> str:
    """Return what looks up provider and consumer; ``key`` is how a column of the row is written."""
    joins = []
    if watched.provider:
        joins.append(_OF_PROVIDER.format(key=key.format(watched.provider)))
    if watched.consumer:
        joins.append(_OF_CONSUMER.format(key=key.format(watched.consumer)))
    return " ".join(joins)


def _json(watched: Watched, row: str) -> str:
    members = ", ".join(f"'{column}', {row}.{column}" for column in watched.shown)
    return f"json_build_object({members})::text"


def _differ(columns: tuple[str, ...]) -> str:
    return " OR ".join(f"n.{column} IS DISTINCT FROM o.{column}" for column in columns)


def _insert(columns: dict[str, str], source: str) -> str:
    said = {name: f"said[{number}]" for number, name in enumerate(REQUEST_COLUMNS, 1)}
    every = {"commit_mark": "mark", "time": "moment"} | columns | said
    return f"INSERT INTO placement_journal ({', '.join(every)}) SELECT {', '.join(every.values())} FROM {source}"  # noqa: S608


def _function(watched: Watched) -> str:
    return _FUNCTION.format(created=_recorded(watched, "n"), deleted=_recorded(watched, "o"), changed=_changed(watched))


_EVENTS = (
    ("inserted", "INSERT", "REFERENCING NEW TABLE AS new_rows "),
    ("updated", "UPDATE", "REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows "),
    ("deleted", "DELETE", "REFERENCING OLD TABLE AS old_rows "),
    ("truncated", "TRUNCATE", ""),
)


def _triggers(watched: Watched) -> Iterator[Trigger]:
    for name, event, rows in _EVENTS:
        yield Trigger(
            f"placement_journal_{watched.table}_{name}",
            f"AFTER {event} ON {watched.table}",
            f"{rows}FOR EACH STATEMENT EXECUTE FUNCTION placement_journal_{watched.table}()",
        )


SET = TriggerSet(
    [trigger for watched in WATCHED for trigger in _triggers(watched)],
    {f"placement_journal_{watched.table}": _function(watched) for watched in WATCHED},
)
