"""Truncate and bound numbers, which each kind of database spells differently; on most of them a cast rounds."""

from typing import Any

from sqlalchemy import Double
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import GenericFunction

from placement.domain.inventory import LARGEST_CAPACITY

_CAPACITY = {
    # What is no number becomes the bound, as in Python; on SQLite it is NULL.
    "postgresql": "trunc(greatest(least({0}, {1}), -{1}))",
    "sqlite": "CAST(coalesce(max(min({0}, {1}), -{1}), {1}) AS INTEGER)",
    "mysql": "TRUNCATE(GREATEST(LEAST({0}, {1}), -{1}), 0)",
}
_CAPACITY["mariadb"] = _CAPACITY["mysql"]


_RATIO = "CASE WHEN abs({0}) BETWEEN 1e290 AND 1.7976931348623157e308 THEN sign({0}) * 1e290 ELSE {0} END"
"""A ratio with which products stay within what PostgreSQL calculates; the bound on capacities hides the difference."""


def capacity_text(dialect: str, row: str) -> str:
    """Return the SQL for the capacity of a row of ``inventories``, whole and bounded."""
    total, ratio = f"{row}.total", f"{row}.allocation_ratio"
    if dialect == "postgresql":
        total, ratio = f"CAST({total} AS bigint)", _RATIO.format(ratio)
    return _CAPACITY[dialect].format(f"({total} - {row}.reserved) * {ratio}", LARGEST_CAPACITY)


class bounded_ratio(GenericFunction[float]):  # noqa: N801 - a function of SQL
    """An allocation ratio that no difference of two integers of a table makes too large to calculate with."""

    type = Double()
    inherit_cache = True


@compiles(bounded_ratio)
def _as_it_is(element: Any, compiler: SQLCompiler, **options: Any) -> str:
    return compiler.process(element.clauses, **options)


@compiles(bounded_ratio, "postgresql")
def _bound_ratio(element: Any, compiler: SQLCompiler, **options: Any) -> str:
    return _RATIO.format(compiler.process(element.clauses, **options))


class whole_capacity(GenericFunction[float]):  # noqa: N801 - a function of SQL
    """A capacity as ``domain.inventory`` defines it, truncated and bounded, still of type float."""

    type = Double()
    inherit_cache = True


@compiles(whole_capacity)
def _bound(element: Any, compiler: SQLCompiler, **options: Any) -> str:
    capacity = compiler.process(element.clauses, **options)
    return _CAPACITY[compiler.dialect.name].format(capacity, LARGEST_CAPACITY)


class whole(GenericFunction[float]):  # noqa: N801 - a function of SQL
    """A truncated number, still of type float: sums of floats are cheap, and exact up to 2^53."""

    type = Double()
    inherit_cache = True


@compiles(whole)
def _truncate(element: Any, compiler: SQLCompiler, **options: Any) -> str:
    return f"trunc({compiler.process(element.clauses, **options)})"


@compiles(whole, "sqlite")
def _cast(element: Any, compiler: SQLCompiler, **options: Any) -> str:
    # Not every build of SQLite has trunc().
    return f"CAST({compiler.process(element.clauses, **options)} AS INTEGER)"


@compiles(whole, "mysql")
@compiles(whole, "mariadb")
def _truncate_to_no_digits(element: Any, compiler: SQLCompiler, **options: Any) -> str:
    return f"TRUNCATE({compiler.process(element.clauses, **options)}, 0)"
