"""The texts of the journal's triggers, made by one generator from what is watched and how a database spells it.

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


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a database spells what the triggers need.

    Args:
        insert: the statement that writes rows, one for each of a source.
        looked_up: a column of the provider or consumer that a row names.
        join: adds the providers or consumers to the source, by key, where they are not subqueries.
        ends: the statements that write a row, and keep the name that its object has lost.
        where: a statement that runs only under a condition.
        same: a comparison in which NULL equals NULL.
        time: the time, UTC.
        transaction: the journal's columns for the origin of a change, and for what orders it.
        json: a JSON object with some members, as text.
    """

    insert: str
    looked_up: str
    ends: str
    where: str
    same: str
    time: str
    transaction: dict[str, str]
    json: str
    join: str = ""

    def differ(self, columns: tuple[str, ...]) -> str:
        """Return the condition that any of the columns has changed."""
        return "NOT (" + " AND ".join(self.same.format(f"OLD.{name}", f"NEW.{name}") for name in columns) + ")"


@dataclass(frozen=True, slots=True)
class Source:
    """The rows that a trigger records: what to select them from, and what they are called before and after."""

    rows: str = "(VALUES (1)) AS one"
    old: str = "OLD"
    new: str = "NEW"


_ROW = Source()


def _statement(dialect: Dialect, watched: Watched, action: str, *, kind: str, shows: bool, source: Source) -> str:
    row, rows = source.old if action == DELETED else source.new, source.rows
    columns = {"kind": f"'{kind}'", "action": f"'{action}'"}
    columns |= {name: f"{row}.{column}" for name, column in watched.copies.items()}
    for lookup in watched.lookups:
        names = {"table": lookup.table, "key": lookup.key, "value": f"{row}.{lookup.column}"}
        columns |= {name: dialect.looked_up.format(column=column, **names) for name, column in lookup.columns.items()}
        rows += dialect.join.format(columns=", ".join(lookup.columns.values()), **names)
    for side, alias, is_there in (("old", source.old, action != CREATED), ("new", source.new, action != DELETED)):
        if is_there and watched.amount:
            columns[f"{side}_amount"] = f"{alias}.{watched.amount}"
        if is_there and shows:
            members = ", ".join(f"'{column}', {alias}.{column}" for column in watched.shown)
            columns[f"{side}_row"] = dialect.json.format(members)
    columns = {"time": dialect.time} | columns | dialect.transaction
    return dialect.insert.format(columns=", ".join(columns), values=", ".join(columns.values()), rows=rows)


def _recorded(dialect: Dialect, watched: Watched, action: str, source: Source = _ROW) -> list[str]:
    """Return the statements that record an action, and keep the name that it ends."""
    shows = bool(watched.shown)
    row = _statement(dialect, watched, action, kind=watched.kind, shows=shows, source=source)
    if not watched.ends_name(action):
        return [row]
    recorded = "provider_uuid" if watched.kind == PROVIDER else f"old_row::json ->> '{watched.named}'"
    ends = dialect.ends.format(row=row, kind=watched.kind, named=watched.named, recorded=recorded)
    return ends.split("; ")


def _updated(dialect: Dialect, watched: Watched) -> Iterator[str]:
    """Yield the statements of an UPDATE: a row of the same identity is changed, else deleted and created."""
    is_another = dialect.differ(watched.identity)
    for action in (DELETED, CREATED):
        for statement in _recorded(dialect, watched, action):
            yield dialect.where.format(statement=statement, condition=is_another)
    if not watched.values:
        return
    is_changed = f"NOT {is_another} AND {dialect.differ(watched.values)}"
    if watched.kind == PROVIDER:
        is_shown = dialect.differ(watched.shown)
        only = _statement(dialect, watched, CHANGED, kind=GENERATION, shows=False, source=_ROW)
        yield dialect.where.format(statement=only, condition=f"{is_changed} AND NOT {is_shown}")
        is_changed = f"NOT {is_another} AND {is_shown}"
    for statement in _recorded(dialect, watched, CHANGED):
        yield dialect.where.format(statement=statement, condition=is_changed)


def _code(dialect: Dialect, watched: Watched, inserted: Source = _ROW, deleted: Source = _ROW) -> dict[str, str]:
    """Return what a table's triggers run, by event."""
    statements = {
        "INSERT": _recorded(dialect, watched, CREATED, inserted),
        "DELETE": _recorded(dialect, watched, DELETED, deleted),
        "UPDATE": _updated(dialect, watched),
    }
    return {event: "; ".join(listed) + ";" for event, listed in statements.items()}


def _triggers(dialect: Dialect, body: str) -> list[Trigger]:
    return [
        Trigger(_name(watched, event), f"AFTER {event} ON {watched.table}", body.format(code))
        for watched in WATCHED
        for event, code in _code(dialect, watched).items()
    ]


def _name(watched: Watched, event: str) -> str:
    return f"placement_journal_{watched.table}_{event.lower().removesuffix('e')}ed"


def _part_of_variable(number: int) -> str:
    """Return the SQL for one part of the request variable; NULL if missing or empty."""
    begun = f"SUBSTRING_INDEX({REQUEST_VARIABLE}, CHAR({ord(SEPARATOR)}), {number})"
    return f"NULLIF(SUBSTRING_INDEX({begun}, CHAR({ord(SEPARATOR)}), -1), '')"


_SUBQUERY = "(SELECT {column} FROM {table} WHERE {key} = {value})"
_NAME_KEPT = "INSERT INTO placement_former_names (journal_id, kind, object_id, name) "
_ON_SQLITE = Dialect(
    insert="INSERT INTO placement_journal ({columns}) SELECT {values}",
    looked_up=_SUBQUERY,
    ends="{row}; " + _NAME_KEPT + "SELECT last_insert_rowid(), '{kind}', OLD.id, OLD.{named}",
    where="{statement} WHERE {condition}",
    same="{} IS {}",
    time="strftime('%Y-%m-%d %H:%M:%f000', 'now')",
    transaction={},
    json="json_object({})",
)
_ON_MARIADB = Dialect(
    # Not SELECT, which would lock out all others from new ids until the statement ends.
    insert="INSERT INTO placement_journal ({columns}) VALUES ({values})",
    looked_up=_SUBQUERY,
    ends="{row}; " + _NAME_KEPT + "VALUES (LAST_INSERT_ID(), '{kind}', OLD.id, OLD.{named})",
    where="IF {condition} THEN {statement}; END IF",
    same="BINARY {} <=> BINARY {}",  # names that differ only in case differ
    time="UTC_TIMESTAMP(6)",
    transaction={name: _part_of_variable(number) for number, name in enumerate(REQUEST_COLUMNS, 1)},
    json="JSON_OBJECT({})",
)
_ON_POSTGRESQL = Dialect(
    insert="INSERT INTO placement_journal ({columns}) SELECT {values} FROM {rows}",
    looked_up="{table}.{column}",
    join=" LEFT JOIN LATERAL (SELECT {columns} FROM {table} WHERE {key} = {value} OFFSET 0) AS {table} ON true",
    ends="WITH ended AS ({row} RETURNING id, kind, object_id, {recorded} AS name) " + _NAME_KEPT + "TABLE ended",
    where="IF {condition} THEN {statement}; END IF",
    same="{} IS NOT DISTINCT FROM {}",
    time="moment",
    transaction={"commit_mark": "mark", "oldest_open": "oldest"}
    | {name: f"origin[{number}]" for number, name in enumerate(REQUEST_COLUMNS, 1)},
    json="json_build_object({})::text",
)
_FUNCTION = f"""
DECLARE
    mark bigint := pg_current_xact_id()::text::bigint;
    oldest bigint := pg_snapshot_xmin(pg_current_snapshot())::text::bigint;
    moment timestamp := clock_timestamp() AT TIME ZONE 'UTC';
    origin text[] := string_to_array(current_setting('{REQUEST_SETTING}', true), chr({ord(SEPARATOR)}));
BEGIN
    IF TG_OP = 'INSERT' THEN
        {{INSERT}}
    ELSIF TG_OP = 'DELETE' THEN
        {{DELETE}}
    ELSIF TG_OP = 'UPDATE' THEN
        {{UPDATE}}
    ELSE
        INSERT INTO placement_journal (commit_mark, oldest_open, time, kind, action)
        VALUES (mark, oldest, moment, '{JOURNAL}', '{BEGAN}');
    END IF;
    RETURN NULL;
END
"""  # noqa: S608


_CALLED = {
    "INSERT": "REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT",
    "UPDATE": "FOR EACH ROW",
    "DELETE": "REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT",
    "TRUNCATE": "FOR EACH STATEMENT",
}
_INSERTED, _DELETED = Source("new_rows AS n", new="n"), Source("old_rows AS o", old="o")

SQLITE = TriggerSet(_triggers(_ON_SQLITE, "BEGIN {} END"))
MARIADB = TriggerSet(_triggers(_ON_MARIADB, "FOR EACH ROW BEGIN {} END"))
POSTGRESQL = TriggerSet(
    [
        Trigger(
            _name(watched, event),
            f"AFTER {event} ON {watched.table}",
            f"{called} EXECUTE FUNCTION placement_journal_{watched.table}()",
        )
        for watched in WATCHED
        for event, called in _CALLED.items()
    ],
    {
        f"placement_journal_{watched.table}": _FUNCTION.format(**_code(_ON_POSTGRESQL, watched, _INSERTED, _DELETED))
        for watched in WATCHED
    },
)
