"""The journal's triggers on SQLite and MariaDB, which call them once per row."""

from collections.abc import Iterator
from dataclasses import dataclass

from placement.store.journal.watched import (
    CHANGED,
    CREATED,
    DELETED,
    GENERATION,
    PROVIDER,
    REQUEST_COLUMNS,
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
            columns[f"{side}_row"] = _json(dialect, watched, side.upper())
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


def _json(dialect: Dialect, watched: Watched, row: str) -> str:
    members = ", ".join(f"'{column}', {row}.{column}" for column in watched.shown)
    return f"{dialect.maker}({members})"


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
