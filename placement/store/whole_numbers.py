"""Cutting off what is behind the point, which every kind of database spells its own way. A cast rounds on most."""

from typing import Any

from sqlalchemy import Double
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import GenericFunction


class whole(GenericFunction[float]):  # noqa: N801 - a function of SQL
    """A number without what is behind the point, still as a float: sums of floats are cheap, and exact to 2^53."""

    type = Double()
    inherit_cache = True


@compiles(whole)
def _truncate(element: Any, compiler: SQLCompiler, **options: Any) -> str:
    return f"trunc({compiler.process(element.clauses, **options)})"


@compiles(whole, "sqlite")
def _cast(element: Any, compiler: SQLCompiler, **options: Any) -> str:
    # Not every SQLite is built with trunc().
    return f"CAST({compiler.process(element.clauses, **options)} AS INTEGER)"


@compiles(whole, "mysql")
@compiles(whole, "mariadb")
def _truncate_to_no_digits(element: Any, compiler: SQLCompiler, **options: Any) -> str:
    return f"TRUNCATE({compiler.process(element.clauses, **options)}, 0)"
