"""The texts that go straight to PostgreSQL's driver (``statements.py``), made with internals of SQLAlchemy.

A list is passed as one array, so a statement has one text, and one prepared plan, however long its lists are. Short
lists of keys are hidden from PostgreSQL's query planner: a plan for one particular list would look cheaper to it than
one for any, and planning each time anew took half of what the database spent on a claim.

``unmet`` checks at start-up that SQLAlchemy still has the internals this relies on. If not, or if the operator sets
``[placement_database] plain_sqlalchemy``, every statement goes through SQLAlchemy.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from string import Formatter
from typing import Any, NamedTuple

from sqlalchemy import ARRAY, BindParameter, Engine, Executable, String, any_, bindparam, cast, select
from sqlalchemy.dialects.postgresql.psycopg import PGCompiler_psycopg, PGDialect_psycopg
from sqlalchemy.exc import DBAPIError, IntegrityError

from placement.store.tables import projects, utc_now


class DirectText(NamedTuple):
    """A statement as sent to PostgreSQL: its text, with placeholders for the ids that are ``literals``.

    ``names`` are its parameters in the order of their numbers, ``own`` the values bound to the statement itself, and
    ``stamps`` the parameters that get the current time.
    """

    template: str
    names: Sequence[str]
    own: Mapping[str, Any]
    stamps: Sequence[str]
    literals: Collection[str]

    def bound(self, values: Mapping[str, Any]) -> tuple[str, list[Any]]:
        """Return the text and the values to send."""
        return self.with_literals(values), self.in_order(values)

    def with_literals(self, values: Mapping[str, Any]) -> str:
        """Return the text with the ids that the query planner should see written into it."""
        if not self.literals:
            return self.template
        return self.template.format_map({name: _literal(values[name]) for name in self.literals})

    def in_order(self, values: Mapping[str, Any]) -> list[Any]:
        """Return the values in the order of the numbered placeholders."""
        stamps = dict.fromkeys(self.stamps, utc_now()) if self.stamps else {}
        named = {**self.own, **stamps, **values}
        return [array(value) if isinstance(value := named[name], list) else value for name in self.names]


def _literal(value: Any) -> str:
    """Format an id, or ids for IN; NULL, which equals nothing, for an empty list. Drop anything but integers."""
    if isinstance(value, list):
        return ",".join([str(int(member)) for member in value if isinstance(member, int)]) or "NULL"
    return str(value) if isinstance(value, int) else ""


def array(members: Iterable[float | str | None]) -> str:
    r"""Format a list as a PostgreSQL array literal: the driver would spend more time on it than on all the rest.

    >>> print(array([1, 2.5, None]), array(['a"b', "c,d"]))
    {1,2.5,NULL} {"a\"b","c,d"}
    """
    return (
        "{" + ",".join([_quoted(element) if isinstance(element, str) else _plain(element) for element in members]) + "}"
    )


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _plain(number: float | None) -> str:
    return "NULL" if number is None else str(number)


def array_of(type_: Any) -> ARRAY[Any]:
    """Return the array type for lists of a type."""
    # A cast to VARCHAR(36) would truncate longer values.
    return ARRAY(String() if isinstance(type_, String) else type_)


class _Compiler(PGCompiler_psycopg):
    def visit_in_op_binary(self, binary: Any, operator: Any, **options: Any) -> Any:  # noqa: ARG002 - it is IN
        """Compile ``x IN (list)`` to ``x = ANY (array)``."""
        if not isinstance(binary.right, BindParameter) or binary.right.literal_execute:
            return self._generate_generic_binary(binary, " IN ", **options)
        type_ = array_of(binary.left.type)
        members: Any = bindparam(binary.right.key, type_=type_)
        return self.process(binary.left == any_(self._shown(members, type_)), **options)

    def _shown(self, members: Any, type_: ARRAY[Any]) -> Any:  # noqa: ARG002 - for lists that are hidden
        return members

    def visit_bindparam(self, bindparam: Any, *args: Any, **options: Any) -> Any:
        """Leave placeholders for ids that are written into the text."""
        if bindparam.literal_execute:
            return f"({{{bindparam.key}}})"
        return super().visit_bindparam(bindparam, *args, **options)  # type: ignore[no-untyped-call]


class _HidingCompiler(_Compiler):
    def _shown(self, members: Any, type_: ARRAY[Any]) -> Any:
        """Put a list into a subquery, whose value the query planner cannot see."""
        return cast(select(members).scalar_subquery(), type_)


class _NumberedDialect(PGDialect_psycopg):
    statement_compiler = _Compiler
    supports_statement_cache = True


class _HidingDialect(_NumberedDialect):
    statement_compiler = _HidingCompiler
    supports_statement_cache = True


_DIALECT = _NumberedDialect(paramstyle="numeric_dollar")  # type: ignore[no-untyped-call]
_HIDING = _HidingDialect(paramstyle="numeric_dollar")  # type: ignore[no-untyped-call]


def text_of(statement: Executable, *, hides_lists: bool = False) -> DirectText:
    """Compile a statement for PostgreSQL."""
    compiled: Any = statement.compile(dialect=_HIDING if hides_lists else _DIALECT)  # type: ignore[attr-defined]
    defaults = {column.key: column.default for column in compiled.insert_prefetch}
    defaults |= {column.key: column.onupdate for column in compiled.update_prefetch}
    template: str = compiled.string
    return DirectText(
        template=template,
        names=compiled.positiontup or (),
        own=compiled.params | {name: default.arg for name, default in defaults.items() if default.is_scalar},
        # The only computed defaults are the timestamps of a row's creation and change.
        stamps=[name for name, default in defaults.items() if default.is_callable],
        literals={name for _, name, *_ in Formatter().parse(template) if name},
    )


@lru_cache(maxsize=1)
def unmet() -> str | None:
    """Return what this module needs of SQLAlchemy and the driver but does not find, or None."""
    try:
        return next(_unmet(), None)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def _unmet() -> Iterator[str]:
    dbapi: Any = _DIALECT.import_dbapi()  # type: ignore[no-untyped-call]
    expanded: BindParameter[Any] = bindparam("ids", expanding=True)
    text = text_of(
        select(projects.c.id).where(projects.c.id.in_(expanded), projects.c.external_id == bindparam("name"))
    )
    places = re.findall(r"(\w+) = (?:ANY )?\(?\$(\d)", text.template)
    if {column: text.names[int(number) - 1] for column, number in places} != {"id": "ids", "external_id": "name"}:
        yield "numbered parameters"
    written: BindParameter[Any] = bindparam("ids", expanding=True, literal_execute=True)
    text = text_of(select(projects.c.id).where(projects.c.id.in_(written)))
    if text.literals != {"ids"} or not text.with_literals({"ids": [1, 2]}).endswith("IN (1,2)"):
        yield "ids in the text"
    made = text_of(projects.insert().values(external_id="x"))
    changed = text_of(projects.update().values(external_id="x"))
    if [*made.stamps, *changed.stamps] != ["created_at", "updated_at"] or "x" not in changed.own.values():
        yield "defaults of columns"
    error = dbapi.errors.UniqueViolation("duplicate key")
    wrapped = DBAPIError.instance("", (), error, dbapi.Error, connection_invalidated=False, dialect=_DIALECT)
    if not isinstance(wrapped, IntegrityError):
        yield "errors by their kind"
    if not hasattr(Engine.dispatch, "before_cursor_execute"):
        yield "listeners to statements"
    if not (hasattr(dbapi, "RawCursor") and hasattr(dbapi.errors, "error_from_result")):
        yield "the driver's raw cursor, and errors of results"
