"""The texts of the journal's triggers.

SQLite and MariaDB call them once for each row. PostgreSQL calls them once for each statement, whatever the number of
its rows, except for UPDATE: to find the changes, a statement trigger would have to join old and new rows, which takes
longer than all the rest for the one row of a claim. A row that gets another id is recorded as deleted and created, in
the order of the updates. Providers and consumers are looked up by key: PostgreSQL overestimates the rows of a
transition table so much that a plain join would scan all of both.
"""

from collections.abc import Iterator
from dataclasses import dataclass

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
    REQUEST_VARIABLE,
    SEPARATOR,
    WATCHED,
    Watched,
)
from placement.store.trigger_set import Trigger, TriggerSet

_OF_PROVIDER = {"provider_uuid": "uuid", "root_provider_id": "root_provider_id"}
_OF_CONSUMER = ("project_id", "user_id", "consumer_type_id")


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a database spells what the triggers need.

    Args:
        body: a trigger's body around its statements.
        insert: the statement that writes a row.
        written_id: the id of the row that the statement before has written.
        where: a statement that runs only under a condition.
        same: a comparison in which NULL equals NULL.
        moment: the time, UTC.
        request: the journal's columns for the origin of a change.
        maker: the function that builds JSON.
    """

    body: str
    insert: str
    written_id: str
    where: str
    same: str
    moment: str
    request: dict[str, str]
    maker: str

    def differ(self, columns: tuple[str, ...]) -> str:
        """Return the condition that any of the columns has changed."""
        return "NOT (" + " AND ".join(self.same.format(f"OLD.{one}", f"NEW.{one}") for one in columns) + ")"


def _statement(dialect: Dialect, watched: Watched, action: str, *, kind: str, shows: bool) -> str:
    row = "OLD" if action == DELETED else "NEW"
    columns = {"kind": f"'{kind}'", "action": f"'{action}'"}
    columns |= {name: f"{row}.{column}" for name, column in watched.copies.items()} | _looked_up(watched, row)
    for side, there in (("old", action != CREATED), ("new", action != DELETED)):
        if there and watched.amount:
            columns[f"{side}_amount"] = f"{side.upper()}.{watched.amount}"
        if there and shows:
            columns[f"{side}_row"] = _json(dialect.maker, watched, side.upper())
    every = {"time": dialect.moment} | columns | dialect.request
    return _insert(dialect, "placement_journal", every)


def _insert(dialect: Dialect, table: str, columns: dict[str, str]) -> str:
    return dialect.insert.format(table=table, columns=", ".join(columns), values=", ".join(columns.values()))


def _statements(dialect: Dialect, watched: Watched, action: str) -> list[str]:
    """Return what records an action, and keeps the name that it ends."""
    row = _statement(dialect, watched, action, kind=watched.kind, shows=bool(watched.shown))
    if not watched.ends_name(action):
        return [row]
    columns = {"kind": f"'{watched.kind}'", "object_id": "OLD.id", "name": f"OLD.{watched.named}"}
    return [row, _insert(dialect, "placement_former_names", {"journal_id": dialect.written_id} | columns)]


def _looked_up(watched: Watched, row: str) -> dict[str, str]:
    columns = {}
    if watched.provider:
        for name, column in _OF_PROVIDER.items():
            columns[name] = f"(SELECT {column} FROM resource_providers WHERE id = {row}.{watched.provider})"  # noqa: S608
    if watched.consumer:
        for name in _OF_CONSUMER:
            columns[name] = f"(SELECT {name} FROM consumers WHERE uuid = {row}.{watched.consumer})"  # noqa: S608
    return columns


def _json(maker: str, watched: Watched, row: str) -> str:
    members = ", ".join(f"'{column}', {row}.{column}" for column in watched.shown)
    return f"{maker}({members})"


def _updated(dialect: Dialect, watched: Watched) -> Iterator[str]:
    """Yield the statements of an UPDATE: a row of the same identity is changed, else deleted and created."""
    is_another = dialect.differ(watched.identity)
    for action in (DELETED, CREATED):
        for statement in _statements(dialect, watched, action):
            yield dialect.where.format(statement=statement, condition=is_another)
    if not watched.values:
        return
    is_changed = f"NOT {is_another} AND {dialect.differ(watched.values)}"
    if watched.kind == PROVIDER:
        is_shown = dialect.differ(watched.shown)
        only = _statement(dialect, watched, CHANGED, kind=GENERATION, shows=False)
        yield dialect.where.format(statement=only, condition=f"{is_changed} AND NOT {is_shown}")
        is_changed = f"NOT {is_another} AND {is_shown}"
    for statement in _statements(dialect, watched, CHANGED):
        yield dialect.where.format(statement=statement, condition=is_changed)


def _triggers(dialect: Dialect, watched: Watched) -> Iterator[Trigger]:
    for name, event, action in (("inserted", "INSERT", CREATED), ("deleted", "DELETE", DELETED)):
        yield _trigger(dialect, watched, (name, event), _statements(dialect, watched, action))
    yield _trigger(dialect, watched, ("updated", "UPDATE"), list(_updated(dialect, watched)))


def _trigger(dialect: Dialect, watched: Watched, fires: tuple[str, str], statements: list[str]) -> Trigger:
    name, event = fires
    return Trigger(
        f"placement_journal_{watched.table}_{name}",
        f"AFTER {event} ON {watched.table}",
        dialect.body.format("; ".join(statements) + ";"),
    )


def _said(number: int) -> str:
    """Return the SQL for one part of the request variable; NULL if missing or empty."""
    begun = f"SUBSTRING_INDEX({REQUEST_VARIABLE}, CHAR({ord(SEPARATOR)}), {number})"
    return f"NULLIF(SUBSTRING_INDEX({begun}, CHAR({ord(SEPARATOR)}), -1), '')"


_SQLITE = Dialect(
    body="BEGIN {} END",
    insert="INSERT INTO {table} ({columns}) SELECT {values}",
    written_id="last_insert_rowid()",
    where="{statement} WHERE {condition}",
    same="{} IS {}",
    moment="strftime('%Y-%m-%d %H:%M:%f000', 'now')",
    request={},
    maker="json_object",
)
_MARIADB = Dialect(
    body="FOR EACH ROW BEGIN {} END",
    # Not SELECT, which would lock out all others from new ids until the statement ends.
    insert="INSERT INTO {table} ({columns}) VALUES ({values})",
    written_id="LAST_INSERT_ID()",
    where="IF {condition} THEN {statement}; END IF",
    same="BINARY {} <=> BINARY {}",  # names that differ only in case differ
    moment="UTC_TIMESTAMP(6)",
    request={name: _said(number) for number, name in enumerate(REQUEST_COLUMNS, 1)},
    maker="JSON_OBJECT",
)

SQLITE = TriggerSet([trigger for watched in WATCHED for trigger in _triggers(_SQLITE, watched)])
MARIADB = TriggerSet([trigger for watched in WATCHED for trigger in _triggers(_MARIADB, watched)])


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

_JSON = "json_build_object"
_ONE_ROW = "(VALUES (1)) AS one"
"""The source to select OLD or NEW from."""
_JOIN_PROVIDER = (
    "LEFT JOIN LATERAL (SELECT uuid, root_provider_id FROM resource_providers WHERE id = {key} OFFSET 0) AS p ON true"
)
_JOIN_CONSUMER = (
    "LEFT JOIN LATERAL (SELECT project_id, user_id, consumer_type_id FROM consumers WHERE uuid = {key} "
    "OFFSET 0) AS c ON true"
)


def _recorded(watched: Watched, row: str, rows: str = _ONE_ROW) -> str:
    """Return the statement that records created or deleted rows."""
    was_made = row in {"n", "NEW"}
    looked_up, joins = _looked_up_on_postgresql(watched, row)
    columns = {name: f"{row}.{column}" for name, column in watched.copies.items()} | looked_up
    side = "new" if was_made else "old"
    if watched.amount:
        columns[f"{side}_amount"] = f"{row}.{watched.amount}"
    if watched.shown:
        columns[f"{side}_row"] = _json(_JSON, watched, row) + "::text"
    action = f"'{CREATED}'" if was_made else f"'{DELETED}'"
    statement = _insert_on_postgresql({"kind": f"'{watched.kind}'", "action": action} | columns, f"{rows} {joins}")
    return statement if was_made else _ending(watched, DELETED, statement)


def _updated_on_postgresql(watched: Watched) -> str:
    """Return the code that records an updated row: as deleted and created, or as changed in its values."""
    other = f"{_recorded(watched, 'OLD')}; {_recorded(watched, 'NEW')};"
    changed = f"ELSIF {_differ(watched.values)} THEN {_changed(watched)};" if watched.values else ""
    return f"IF {_differ(watched.identity)} THEN {other} {changed} END IF;"


def _changed(watched: Watched) -> str:
    looked_up, joins = _looked_up_on_postgresql(watched, "NEW")
    columns = {name: f"NEW.{column}" for name, column in watched.copies.items()} | looked_up
    kind = f"'{watched.kind}'"
    if watched.amount:
        columns |= {"old_amount": f"OLD.{watched.amount}", "new_amount": f"NEW.{watched.amount}"}
    if watched.shown:
        is_shown = _differ(watched.shown)
        for side, row in (("old_row", "OLD"), ("new_row", "NEW")):
            columns[side] = f"CASE WHEN {is_shown} THEN {_json(_JSON, watched, row)}::text END"
        if watched.kind == PROVIDER:
            kind = f"CASE WHEN {is_shown} THEN '{PROVIDER}' ELSE '{GENERATION}' END"
    statement = _insert_on_postgresql({"kind": kind, "action": f"'{CHANGED}'"} | columns, f"{_ONE_ROW} {joins}")
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


def _looked_up_on_postgresql(watched: Watched, row: str) -> tuple[dict[str, str], str]:
    """Return the columns about a row's provider and consumer, and the joins that look both up."""
    columns: dict[str, str] = {}
    joins = []
    if watched.provider:
        columns |= {"provider_uuid": "p.uuid", "root_provider_id": "p.root_provider_id"}
        joins.append(_JOIN_PROVIDER.format(key=f"{row}.{watched.provider}"))
    if watched.consumer:
        columns |= {name: f"c.{name}" for name in _OF_CONSUMER}
        joins.append(_JOIN_CONSUMER.format(key=f"{row}.{watched.consumer}"))
    return columns, " ".join(joins)


def _differ(columns: tuple[str, ...]) -> str:
    return " OR ".join(f"NEW.{column} IS DISTINCT FROM OLD.{column}" for column in columns)


def _insert_on_postgresql(columns: dict[str, str], source: str) -> str:
    said = {name: f"said[{number}]" for number, name in enumerate(REQUEST_COLUMNS, 1)}
    every = {"commit_mark": "mark", "oldest_open": "oldest", "time": "moment"} | columns | said
    return f"INSERT INTO placement_journal ({', '.join(every)}) SELECT {', '.join(every.values())} FROM {source}"  # noqa: S608


_EVENTS = (
    ("inserted", "INSERT", "REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT"),
    ("updated", "UPDATE", "FOR EACH ROW"),
    ("deleted", "DELETE", "REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT"),
    ("truncated", "TRUNCATE", "FOR EACH STATEMENT"),
)


def _triggers_on_postgresql(watched: Watched) -> Iterator[Trigger]:
    for name, event, rows in _EVENTS:
        yield Trigger(
            f"placement_journal_{watched.table}_{name}",
            f"AFTER {event} ON {watched.table}",
            f"{rows} EXECUTE FUNCTION placement_journal_{watched.table}()",
        )


POSTGRESQL = TriggerSet(
    [trigger for watched in WATCHED for trigger in _triggers_on_postgresql(watched)],
    {
        f"placement_journal_{watched.table}": _FUNCTION.format(
            created=_recorded(watched, "n", "new_rows AS n"),
            deleted=_recorded(watched, "o", "old_rows AS o"),
            changed=_updated_on_postgresql(watched),
        )
        for watched in WATCHED
    },
)
