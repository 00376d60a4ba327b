"""Sets of triggers: create them, compare them with this release's definitions, and drop them, on every database."""

import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from placement.errors import PlacementError
from placement.store.tables import REFERENCE_TABLES

_GRANT = "GRANT TRIGGER ON this database to the user of the server"
_TRUST = "SET GLOBAL log_bin_trust_function_creators = 1"
_MARIADB_REFUSALS = {1142: _GRANT, 1227: _GRANT, 1419: _TRUST}
_GRANTED = re.compile(r"GRANT (.+?) ON (?:`((?:[^`]|``)+)`|\*)\.(?:`|\*)")
"""A line of SHOW GRANTS: the privileges, and the pattern of databases, None for all."""
_MAY_TRIGGER = re.compile(r"\b(TRIGGER|ALL PRIVILEGES)\b")
_MAY_LOG = re.compile(r"\b(SUPER|BINLOG ADMIN|ALL PRIVILEGES)\b")

_MISSING_ON_POSTGRESQL = text("""
SELECT format('GRANT %I TO %I (or act as %1$I, who owns the tables)', owner, current_user) FROM (
    SELECT DISTINCT pg_get_userbyid(relowner) AS owner FROM pg_class
    WHERE relnamespace = to_regnamespace(current_schema()) AND relname = ANY (:tables)
    AND NOT pg_has_role(relowner, 'USAGE')
) AS owners
UNION ALL SELECT format('GRANT CREATE ON SCHEMA %I TO %I', current_schema(), current_user)
WHERE NOT has_schema_privilege(current_schema(), 'CREATE')
""")
"""Only the owner of a table can drop a trigger on it or comment on it, and functions are made in the schema."""

DOUBTED = "are missing, or were disabled, or come from a dump"
"""Why triggers may not have been there all the time."""

_STANDING = {
    "postgresql": "SELECT t.tgname, p.prosrc, CAST(t.xmin AS text), obj_description(t.oid, 'pg_trigger') "
    "FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid "
    "WHERE t.tgrelid = ANY (SELECT to_regclass(name) FROM unnest(CAST(:tables AS text[])) AS name) "
    "AND t.tgenabled IN ('O', 'A') AND NOT t.tgisinternal",
    "sqlite": "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'",
    "mysql": "SELECT trigger_name, action_statement FROM information_schema.triggers WHERE trigger_schema = DATABASE()",
}
"""Queries for the triggers in place: their names and bodies. On PostgreSQL the body is the function's, and there follow
the transaction that last changed the trigger, and its comment.
"""


class TriggersRefused(PlacementError):
    """The database refuses to make triggers."""


@dataclass(frozen=True, slots=True)
class Trigger:
    """A trigger: ``CREATE TRIGGER name`` + `fires` + `body`."""

    name: str
    fires: str
    body: str

    @property
    def create(self) -> str:
        """The statement that creates it."""
        return f"CREATE TRIGGER {self.name} {self.fires} {self.body}"

    @property
    def table(self) -> str:
        """The table it is on."""
        return self.fires.partition(" ON ")[2].split()[0]

    @property
    def function(self) -> str:
        """The function it calls, on PostgreSQL."""
        return self.body.rpartition(" ")[2].removesuffix("()")


@dataclass(frozen=True, slots=True)
class TriggerSet:
    """The triggers for one kind of database and, on PostgreSQL, the functions they call: bodies by name."""

    triggers: Sequence[Trigger]
    functions: Mapping[str, str] = field(default_factory=dict)

    def on(self, tables: Collection[str]) -> "TriggerSet":
        """Return only the triggers on some tables, with their functions."""
        triggers = [trigger for trigger in self.triggers if trigger.table in tables]
        called = {trigger.function for trigger in triggers}
        return TriggerSet(triggers, {name: body for name, body in self.functions.items() if name in called})

    def create(self, connection: Connection) -> None:
        """Create functions and triggers."""
        if self.functions:
            self._create_functions(connection)
        for trigger in self.triggers:
            connection.exec_driver_sql(trigger.create)
        if connection.dialect.name == "postgresql":
            self._seal(connection)

    def _seal(self, connection: Connection) -> None:
        """Note in each trigger's comment which transaction created it: whoever disables or dumps it, changes that."""
        tables = {trigger.name: trigger.table for trigger in self.triggers}
        for name, _body, changed_by, _comment in self._rows(connection):
            if name in tables:
                connection.exec_driver_sql(f"COMMENT ON TRIGGER {name} ON {tables[name]} IS '{changed_by}'")

    def _create_functions(self, connection: Connection) -> None:
        # SECURITY DEFINER with a fixed search path: a user who may write a table needs no rights on ours.
        schema = connection.execute(text("SELECT quote_ident(current_schema())")).scalar_one()
        for name, body in self.functions.items():
            connection.exec_driver_sql(
                f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER "
                f"SET search_path = {schema}, pg_temp AS $body${body}$body$"
            )

    def replace(self, connection: Connection) -> None:
        """Replace the functions and triggers of another release, so that no change slips past both versions.

        On MariaDB, where DDL commits, one statement replaces each trigger; elsewhere the transaction covers it all.
        """
        if connection.dialect.name == "mysql":
            for trigger in self.triggers:
                connection.exec_driver_sql(trigger.create.replace("CREATE", "CREATE OR REPLACE", 1))
        else:
            self.drop(connection)
            self.create(connection)

    def drop(self, connection: Connection) -> None:
        """Drop whichever of the triggers and functions exist."""
        for trigger in self.triggers:
            on_table = f" ON {trigger.table}" if connection.dialect.name == "postgresql" else ""
            connection.exec_driver_sql(f"DROP TRIGGER IF EXISTS {trigger.name}{on_table}")
        for function in self.functions:
            connection.exec_driver_sql(f"DROP FUNCTION IF EXISTS {function}()")

    def is_in_place(self, connection: Connection) -> bool:
        """Tell whether every trigger exists, is defined as in this release, and was never disabled. One small query."""
        standing = {(name, shown) for name, shown, *seal in self._rows(connection) if not seal or seal[0] == seal[1]}
        return standing >= self._made(connection.dialect.name)

    def fingerprint(self, dialect: str) -> str:
        """Return a digest that distinguishes these triggers from another release's."""
        return _digest(self._made(dialect))

    def standing_fingerprint(self, connection: Connection) -> str:
        """Return the fingerprint of the enabled triggers that exist under these names."""
        names = {trigger.name for trigger in self.triggers}
        # The first releases wrote no comments.
        standing = [row for row in self._rows(connection) if row[2:] == () or row[3] in {None, row[2]}]
        return _digest((name, shown) for name, shown, *_seal in standing if name in names)

    def _made(self, dialect: str) -> set[tuple[str, str]]:
        return {(trigger.name, self._shown(trigger, dialect)) for trigger in self.triggers}

    def _shown(self, trigger: Trigger, dialect: str) -> str:
        """Return a trigger's body as the database reports it."""
        if dialect == "postgresql":
            return self.functions[trigger.function]
        return trigger.create if dialect == "sqlite" else trigger.body.removeprefix("FOR EACH ROW ")

    def _rows(self, connection: Connection) -> list[tuple[str, ...]]:
        query, tables = _STANDING[connection.dialect.name], {trigger.table for trigger in self.triggers}
        parameters = {"tables": list(tables)} if connection.dialect.name == "postgresql" else {}
        return [(*row,) for row in connection.execute(text(query), parameters)]

    def some_are_there(self, connection: Connection) -> bool:
        """Tell whether any of the triggers exists, in whatever state."""
        query = {
            "postgresql": "SELECT tgname FROM pg_trigger WHERE NOT tgisinternal",
            "sqlite": "SELECT name FROM sqlite_master WHERE type = 'trigger'",
        }.get(
            connection.dialect.name,
            "SELECT trigger_name FROM information_schema.triggers WHERE trigger_schema = DATABASE()",
        )
        names = set(connection.execute(text(query)).scalars())
        return not names.isdisjoint(trigger.name for trigger in self.triggers)


def _digest(texts: Iterable[tuple[str, str]]) -> str:
    return hashlib.sha256(repr(sorted(texts)).encode()).hexdigest()[:16]


@contextmanager
def refusals_explained(
    connection: Connection, remove: Callable[[Connection], None], consequence: str
) -> Iterator[None]:
    """Turn MariaDB's refusal to create triggers into TriggersRefused with the missing grant and the consequence."""
    try:
        yield
    except DBAPIError as error:
        grant = _refusal(error)
        if grant is None:
            raise
        remove(connection)
        raise TriggersRefused(
            f"The database refuses to make triggers, so {consequence}: {grant}, then run 'placement db upgrade' again."
        ) from error


def missing_grant(connection: Connection) -> str | None:
    """Return what an operator has to do before triggers can be made; None if nothing stands against them.

    On MariaDB nothing but the grants can tell: who lacks the privilege does not even see the triggers that are there.
    """
    if connection.dialect.name == "postgresql":
        tables = [table.name for table in REFERENCE_TABLES]
        return "; ".join(connection.execute(_MISSING_ON_POSTGRESQL, {"tables": tables}).scalars()) or None
    return _missing_on_mariadb(connection) if connection.dialect.name == "mysql" else None


def _missing_on_mariadb(connection: Connection) -> str | None:
    lines = connection.exec_driver_sql("SHOW GRANTS").scalars()
    grants = [match.groups() for line in lines if (match := _GRANTED.match(line))]
    database, needs_trust = connection.exec_driver_sql(
        "SELECT DATABASE(), @@log_bin AND NOT @@log_bin_trust_function_creators"
    ).one()
    if not any(_MAY_TRIGGER.search(names) and _is_matched(database, pattern) for names, pattern in grants):
        return _GRANT
    if needs_trust and not any(_MAY_LOG.search(names) for names, pattern in grants if pattern is None):
        return _TRUST
    return None


def _is_matched(database: str, pattern: str | None) -> bool:
    """Tell whether a grant's pattern covers a database: ``%`` and ``_`` are wildcards, unless escaped."""
    if pattern is None:
        return True
    wildcards = {"%": ".*", "_": "."}
    parts = re.findall(r"\\?.", pattern.replace("``", "`"))
    return re.fullmatch("".join(wildcards.get(part) or re.escape(part[-1]) for part in parts), database) is not None


def _refusal(error: DBAPIError) -> str | None:
    """Return the grant that an operator has to give for MariaDB to create triggers, or None for any other error."""
    arguments = error.orig.args if error.orig is not None else ()
    code = arguments[0] if arguments else None
    grant = _MARIADB_REFUSALS.get(code) if isinstance(code, int) else None
    return None if grant is None else f"({code}) {grant}"
