"""Truncate numbers, which each kind of database spells differently; on most of them a cast rounds."""

from typing import Any

from sqlalchemy import Double
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import GenericFunction


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
